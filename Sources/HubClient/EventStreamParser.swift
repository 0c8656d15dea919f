package import Foundation

/// One event as it came: a name and data, whatever they mean.
package struct ServerSentEvent: Hashable, Sendable {
  package var name: String
  package var data: Data

  package init(name: String, data: Data) {
    self.name = name
    self.data = data
  }
}

/// Takes a `text/event-stream` apart, in whatever pieces it comes; a pure value.
///
/// Lines end with CR, LF or both; a comment, an `id`, a `retry` and an unknown field are passed over;
/// an event without data is none; what is not ended by an empty line is not there. (WHATWG HTML,
/// section 9.2.6.)
package struct EventStreamParser {
  /// The most bytes of an event, its name and lines included: 64 KiB, far above those of the
  /// protocol.
  package static let eventByteCountMax = 64 << 10

  private var line: [UInt8] = []
  private var name: [UInt8] = []
  private var data = Data()
  /// Bytes of the event so far, those of comments included.
  private var byteCount = 0
  /// The line that ended with CR may end with LF, too.
  private var isAfterCarriageReturn = false
  private var isAtStart = true
  /// An event was larger than it may be; nothing more is taken.
  package private(set) var isTooLarge = false

  package init() {}

  /// Takes a piece.
  /// - Returns: The events that it completes, in order; none any more once ``isTooLarge``.
  package mutating func take(_ bytes: some Collection<UInt8>) -> [ServerSentEvent] {
    var events: [ServerSentEvent] = []
    for byte in bytes where !isTooLarge {
      if byte == UInt8(ascii: "\n"), isAfterCarriageReturn {
        isAfterCarriageReturn = false
        continue
      }
      isAfterCarriageReturn = byte == UInt8(ascii: "\r")
      if isAfterCarriageReturn || byte == UInt8(ascii: "\n") {
        if let event = endLine() { events.append(event) }
      } else {
        line.append(byte)
        byteCount += 1
        isTooLarge = byteCount > EventStreamParser.eventByteCountMax
      }
    }
    return events
  }

  private mutating func endLine() -> ServerSentEvent? {
    defer { line.removeAll(keepingCapacity: true) }
    if isAtStart {
      isAtStart = false
      if line.starts(with: [0xEF, 0xBB, 0xBF]) { line.removeFirst(3) }
    }
    guard !line.isEmpty else { return endEvent() }
    let colon = line.firstIndex(of: UInt8(ascii: ":")) ?? line.endIndex
    var value = line[colon...].dropFirst()
    if value.first == UInt8(ascii: " ") { value = value.dropFirst() }
    switch line[..<colon] {
    case []:
      // A stream of comments alone is as long as it likes; its lines are not kept.
      byteCount -= line.count
    case ArraySlice("event".utf8): name = Array(value)
    case ArraySlice("data".utf8):
      data.append(contentsOf: value)
      data.append(UInt8(ascii: "\n"))
    default: byteCount -= line.count
    }
    return nil
  }

  private mutating func endEvent() -> ServerSentEvent? {
    defer {
      name = []
      data = Data()
      byteCount = 0
    }
    guard !data.isEmpty else { return nil }
    return ServerSentEvent(
      name: name.isEmpty ? "message" : String(decoding: name, as: UTF8.self),
      data: Data(data.dropLast()))
  }
}

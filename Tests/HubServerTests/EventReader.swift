import Foundation
import HubProtocol

/// Reads the chunks of an event stream, event by event.
final class EventReader {
  let head: String
  private let connection: RawConnection
  /// Chunked, as it came.
  private var raw: Data
  /// Without the chunks' sizes.
  private var text = ""

  init(_ connection: RawConnection) throws {
    self.connection = connection
    var bytes = Data()
    while bytes.range(of: Data("\r\n\r\n".utf8)) == nil {
      guard let some = connection.receiveSome() else {
        throw RawHTTPError.ended(afterByteCount: bytes.count)
      }
      bytes += some
    }
    let end = bytes.range(of: Data("\r\n\r\n".utf8)) ?? bytes.startIndex..<bytes.startIndex
    head = String(decoding: bytes[..<end.lowerBound], as: UTF8.self)
    raw = Data(bytes[end.upperBound...])
  }

  /// The next event or comment, as it is written; nil once the stream has ended in order.
  func next() throws -> String? {
    while true {
      if let end = text.range(of: "\n\n") {
        defer { text = String(text[end.upperBound...]) }
        return String(text[..<end.lowerBound])
      }
      guard let chunk = try nextChunk() else { return nil }
      text += chunk
    }
  }

  private func nextChunk() throws -> String? {
    while true {
      if let lineEnd = raw.range(of: Data("\r\n".utf8)),
        let count = Int(String(decoding: raw[..<lineEnd.lowerBound], as: UTF8.self), radix: 16),
        raw.distance(from: lineEnd.upperBound, to: raw.endIndex) >= count + 2
      {
        let chunk = raw[lineEnd.upperBound...].prefix(count)
        raw = Data(raw[lineEnd.upperBound...].dropFirst(count + 2))
        return count == 0 ? nil : String(decoding: chunk, as: UTF8.self)
      }
      guard let some = connection.receiveSome() else {
        throw RawHTTPError.ended(afterByteCount: raw.count)
      }
      raw += some
    }
  }
}

/// An event stream that a test reads from.
actor EventStreamClient {
  private let reader: EventReader
  let head: String

  init(
    _ client: TestClient, _ added: [String: String] = [:], token: String? = nil
  ) async throws {
    let connection = try client.connection("/v1/events", added, token: token)
    let box = try await blocking { Box(try EventReader(connection)) }
    reader = box.reader
    head = reader.head
  }

  /// The next event or comment; nil once the stream has ended in order.
  func next() async throws -> String? {
    let box = Box(reader)
    return try await blocking { try box.reader.next() }
  }

  /// The next event; a comment that came before it says only that the hub is there, and comes whenever the
  /// machine is so busy that the stream was silent for long.
  func nextEvent() async throws -> String? {
    while true {
      let next = try await next()
      if next?.hasPrefix(":") != true { return next }
    }
  }

  /// SAFETY: one call at a time uses it, and waits for the thread that does.
  private struct Box: @unchecked Sendable {
    let reader: EventReader
    init(_ reader: EventReader) { self.reader = reader }
  }
}

import Foundation
import HubProtocol

/// Puts an answer together from the pieces that come in, within its limits; a pure value.
///
/// Header lines of interim answers (1xx) and of trailers are dropped: only the head of the final
/// answer may say whose answer it is.
struct AnswerCollector {
  /// The most bytes of all header lines: 256 KiB, four times what a hub accepts itself.
  static let headByteCountMax = 256 << 10

  private enum Place {
    case beforeHead
    case inHead(isInterim: Bool)
    case afterHead
  }

  private let bodyByteCountMax: Int
  private var place = Place.beforeHead
  private var headByteCount = 0
  private(set) var headers: [HeaderField] = []
  private(set) var body = Data()
  /// More came than may be kept; nothing of the answer is of use.
  private(set) var isTooLarge = false
  /// How many bytes have come in, whatever they were; what tells a slow answer from none.
  private(set) var receivedByteCount = 0

  /// The head of the final answer came whole. libcurl takes an end within it for the end of the
  /// answer.
  var hasWholeHead: Bool {
    if case .afterHead = place { true } else { false }
  }

  init(bodyByteCountMax: Int) {
    self.bodyByteCountMax = bodyByteCountMax
  }

  /// Takes a part of the body.
  /// - Returns: False if the exchange must end.
  mutating func takeBody(_ bytes: some Collection<UInt8>) -> Bool {
    receivedByteCount += bytes.count
    guard bytes.count <= bodyByteCountMax - body.count else {
      isTooLarge = true
      body = Data()
      return false
    }
    body.append(contentsOf: bytes)
    return true
  }

  /// Takes one line of a head, with its line break.
  /// - Returns: False if the exchange must end.
  mutating func takeHeaderLine(_ bytes: some Collection<UInt8>) -> Bool {
    receivedByteCount += bytes.count
    headByteCount += bytes.count
    guard headByteCount <= AnswerCollector.headByteCountMax else {
      isTooLarge = true
      headers = []
      return false
    }
    let line = Array(bytes).trimming(lineBreaks)
    switch place {
    case .beforeHead:
      headers = []
      place = .inHead(isInterim: isInterim(statusLine: line))
    case .inHead(let isInterim):
      if line.isEmpty {
        place = isInterim ? .beforeHead : .afterHead
      } else {
        takeField(line)
      }
    case .afterHead:
      break
    }
    return true
  }

  /// `HTTP/1.1 1xx`, RFC 9112 section 4.
  private func isInterim(statusLine line: ArraySlice<UInt8>) -> Bool {
    let words = line.split(separator: UInt8(ascii: " "), maxSplits: 2)
    return words.count >= 2 && words[1].count == 3 && words[1].first == UInt8(ascii: "1")
  }

  private mutating func takeField(_ line: ArraySlice<UInt8>) {
    if let first = line.first, blanks.contains(first), let last = headers.indices.last {
      // A folded line goes on with the value before it (RFC 9112 section 5.2).
      headers[last].value += " " + String(decoding: line.trimming(blanks), as: UTF8.self)
      return
    }
    guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { return }
    headers.append(
      HeaderField(
        String(decoding: line[..<colon], as: UTF8.self),
        String(decoding: line[(colon + 1)...].trimming(blanks), as: UTF8.self)))
  }
}

// Bytes and not characters: a combining mark behind a colon must not hide the colon.
private let blanks: [UInt8] = [UInt8(ascii: " "), UInt8(ascii: "\t")]
private let lineBreaks: [UInt8] = [UInt8(ascii: "\r"), UInt8(ascii: "\n")]

extension BidirectionalCollection<UInt8> {
  /// The part between the bytes of `set` at either end.
  fileprivate func trimming(_ set: [UInt8]) -> SubSequence {
    var rest = drop { set.contains($0) }
    while let last = rest.last, set.contains(last) { rest.removeLast() }
    return rest
  }
}

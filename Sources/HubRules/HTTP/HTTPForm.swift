import HubProtocol

/// What a head must be before anything in it counts. (protocol.md, *HTTP*; RFC 9112.)
///
/// libmicrohttpd lets through what two servers could read differently; each of these is answered with
/// an error here and ends the connection.
package enum HTTPForm {
  /// The longest head, in bytes.
  package static let headByteCountMax = 64 << 10
  /// The longest target, in bytes.
  package static let targetByteCountMax = 16 << 10

  /// Fields that the hub reads; twice, one of them could mean two things.
  private static let knownFields = [
    HubHeader.authorization, HubHeader.account, HubHeader.fault, HubHeader.accept,
    HubHeader.contentType, HubHeader.contentEncoding, HubHeader.contentLength,
    "Transfer-Encoding", "Host",
  ]

  /// What is wrong with a head, or nil.
  package static func refusal(of head: RequestHead) -> Refusal? {
    guard head.target.count <= targetByteCountMax else {
      return Refusal(.uriTooLong, "the target is longer than \(targetByteCountMax) bytes")
    }
    guard head.byteCount <= headByteCountMax else {
      return Refusal(.headersTooLarge, "the head is longer than \(headByteCountMax) bytes")
    }
    let complaint = complaint(aboutLinesOf: head) ?? complaint(aboutFieldsOf: head)
    return complaint.map { Refusal(.badRequest, $0) }
  }

  private static func complaint(aboutLinesOf head: RequestHead) -> String? {
    guard head.isWellFormed else {
      return "the head has a NUL, a folded header or a line without CR LF"
    }
    guard head.version == "HTTP/1.1" || head.version == "HTTP/1.0" else {
      return "the hub speaks HTTP/1.1"
    }
    guard head.target.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
      return "the target has bytes that must be percent-encoded"
    }
    guard head.fields.allSatisfy({ isToken($0.name) }) else {
      return "the name of a header is none"
    }
    // A bare CR ends a line for some servers. (RFC 9112, section 2.2.)
    guard head.fields.allSatisfy({ !$0.value.contains(0x0D) }) else {
      return "the value of a header has a CR"
    }
    return nil
  }

  private static func complaint(aboutFieldsOf head: RequestHead) -> String? {
    for name in knownFields where head.values(of: name).count > 1 {
      return "the header \(name) is there twice"
    }
    if head.version == "HTTP/1.1", head.values(of: "Host").isEmpty {
      return "the header Host is missing"
    }
    guard let coding = head.text(of: "Transfer-Encoding") else { return nil }
    guard head.values(of: HubHeader.contentLength).isEmpty else {
      return "Content-Length and Transfer-Encoding exclude each other"
    }
    guard asciiEqual(coding, "chunked"), head.version == "HTTP/1.1" else {
      return "the only transfer coding is chunked"
    }
    return nil
  }

  /// RFC 9110 section 5.6.2.
  private static func isToken(_ name: String) -> Bool {
    !name.isEmpty
      && name.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
          UInt8(ascii: "0")...UInt8(ascii: "9"):
          true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
      }
  }
}

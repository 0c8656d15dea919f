import Foundation
import HubProtocol
import ProfileSync

/// A request that was checked and can be sent: what libcurl is given, as a value.
struct Exchange: Sendable {
  let scheme: String
  let url: String
  let method: String
  /// Header lines as libcurl takes them, those included that keep it from adding its own.
  let headerLines: [String]
  /// The body; nil for a method that has none.
  let body: Data?
  let answerByteCountMax: Int
  let timeout: Duration
  let connectTimeout: Duration
  let stallLimit: Duration
  /// Its answer is taken as it comes.
  let isStream: Bool
  /// What an error calls this exchange: method and address, without the query.
  let name: String

  init(
    _ request: HubRequest, to address: HubAddress, connectTimeout: Duration,
    isStream: Bool = false
  ) throws(TransportError) {
    func refusal(_ reason: String) -> TransportError {
      TransportError(
        code: .invalidRequest, description: "the request was not sent: \(reason)")
    }
    guard !request.method.isEmpty, request.method.utf8.allSatisfy(isUpperCaseLetter) else {
      throw refusal("its method is no word in upper case")
    }
    // libcurl sends what it is given: a space or line break would begin another request.
    guard request.target.utf8.first == UInt8(ascii: "/"),
      request.target.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f && $0 != UInt8(ascii: "#") })
    else { throw refusal("its target is no path with percent-encoding") }
    guard request.answerByteCountMax >= 0 else {
      throw refusal("its limit for the answer is below 0")
    }
    var names: Set<String> = []
    var lines: [String] = []
    for field in request.headers {
      guard !field.name.isEmpty, field.name.utf8.allSatisfy(isTokenByte) else {
        throw refusal("a header's name is no token of RFC 9110")
      }
      guard field.value.utf8.allSatisfy({ $0 == 0x09 || ($0 >= 0x20 && $0 != 0x7f) }) else {
        throw refusal("the value of header \(field.name) has a control character")
      }
      let name = field.name.lowercased()
      guard !Exchange.ownHeaders.contains(name) else {
        throw refusal("the header \(field.name) is the transport's to set")
      }
      names.insert(name)
      // libcurl takes "Name:" for "leave it out" and "Name;" for "send it empty".
      lines.append(field.value.isEmpty ? "\(field.name);" : "\(field.name): \(field.value)")
    }
    for name in ["Accept", "Content-Type", "User-Agent", "Expect"]
    where !names.contains(name.lowercased()) {
      lines.append("\(name):")
    }
    scheme = address.scheme
    url = address.base + request.target
    method = request.method
    headerLines = lines
    body = request.body ?? (request.method == "POST" || request.method == "PUT" ? Data() : nil)
    answerByteCountMax = request.answerByteCountMax
    timeout = request.timeout
    self.connectTimeout = min(connectTimeout, request.timeout)
    stallLimit = request.stallLimit
    self.isStream = isStream
    let path = request.target.prefix { $0 != "?" }
    name = "\(request.method) \(address.base)\(path)"
  }

  /// What frames the message or names the server.
  private static let ownHeaders: Set<String> = [
    "connection", "content-length", "host", "transfer-encoding",
  ]
}

private func isUpperCaseLetter(_ byte: UInt8) -> Bool {
  byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z")
}

/// RFC 9110 section 5.6.2.
private func isTokenByte(_ byte: UInt8) -> Bool {
  switch byte {
  case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
    UInt8(ascii: "0")...UInt8(ascii: "9"):
    true
  default:
    "!#$%&'*+-.^_`|~".utf8.contains(byte)
  }
}

extension Duration {
  /// Whole milliseconds, at least 1 (libcurl takes 0 for "for ever") and at most a day.
  var curlMilliseconds: Int {
    let bounded = Swift.min(Swift.max(self, .milliseconds(1)), .seconds(86_400))
    let (seconds, attoseconds) = bounded.components
    return Int(seconds) * 1_000 + Int(attoseconds / 1_000_000_000_000_000)
  }
}

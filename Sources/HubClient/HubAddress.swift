import Foundation
import ProfileSync

/// A hub's base address, checked once.
struct HubAddress: Hashable, Sendable {
  /// `http` or `https`.
  let scheme: String
  /// Scheme, host, port and path, without a slash at the end.
  let base: String

  init(_ url: URL) throws(TransportError) {
    func refusal(_ reason: String) -> TransportError {
      TransportError(
        code: .invalidURL, description: "the hub's address \(reason); give it as https://host:port")
    }
    let absolute = url.absoluteURL
    guard let scheme = absolute.scheme?.lowercased(), scheme == "http" || scheme == "https" else {
      throw refusal("is neither http nor https")
    }
    guard let host = absolute.host(percentEncoded: true), !host.isEmpty else {
      throw refusal("names no host")
    }
    // A user or a query would be sent, or logged, with every request.
    guard absolute.user == nil, absolute.password == nil else {
      throw refusal("must not hold a user or a password")
    }
    guard absolute.query == nil, absolute.fragment == nil else {
      throw refusal("must not hold a query or a fragment")
    }
    if let port = absolute.port, !(1...65_535).contains(port) {
      throw refusal("has a port outside 1 to 65535")
    }
    self.scheme = scheme
    var base = absolute.absoluteString
    while base.hasSuffix("/") { base.removeLast() }
    self.base = base
  }
}

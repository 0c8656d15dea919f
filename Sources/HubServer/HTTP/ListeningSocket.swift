import Foundation

/// A socket that listens on one address, until ``end()``.
struct ListeningSocket: Sendable {
  let descriptor: Int32
  let port: UInt16

  /// How many connections may wait to be taken.
  private static let backlogCount: Int32 = 4_096

  /// Binds and listens.
  /// - Parameter address: a numeric IPv4 or IPv6 address.
  /// - Parameter port: 0 lets the system choose.
  /// - Throws: ``HubServerError`` `listenFailed`.
  init(address: String, port: UInt16) throws(HubServerError) {
    var hints = addrinfo()
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    var found: UnsafeMutablePointer<addrinfo>?
    guard getaddrinfo(address, String(port), &hints, &found) == 0, let found else {
      throw HubServerError(
        .listenFailed, "\(address) is no numeric address; give one such as 127.0.0.1 or ::1")
    }
    defer { freeaddrinfo(found) }
    let info = found.pointee
    let descriptor = socket(
      info.ai_family, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue),
      0)
    guard descriptor >= 0 else { throw ListeningSocket.failure(address, port) }
    var on: Int32 = 1
    let size = socklen_t(MemoryLayout<Int32>.size)
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, size)
    if info.ai_family == AF_INET6 {
      setsockopt(descriptor, Int32(IPPROTO_IPV6), IPV6_V6ONLY, &on, size)
    }
    guard bind(descriptor, info.ai_addr, info.ai_addrlen) == 0,
      listen(descriptor, ListeningSocket.backlogCount) == 0,
      let bound = ListeningSocket.port(of: descriptor)
    else {
      let failure = ListeningSocket.failure(address, port)
      close(descriptor)
      throw failure
    }
    self.descriptor = descriptor
    self.port = bound
  }

  /// Closes it; once.
  func end() { close(descriptor) }

  private static func port(of descriptor: Int32) -> UInt16? {
    var storage = sockaddr_storage()
    var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
    return withUnsafeMutablePointer(to: &storage) { storage in
      // SAFETY: the storage is large enough for every family, and read as what the kernel says.
      let isKnown = storage.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        getsockname(descriptor, $0, &size) == 0
      }
      guard isKnown else { return nil }
      if Int32(storage.pointee.ss_family) == AF_INET6 {
        return storage.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) {
          UInt16(bigEndian: $0.pointee.sin6_port)
        }
      }
      return storage.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
        UInt16(bigEndian: $0.pointee.sin_port)
      }
    }
  }

  private static func failure(_ address: String, _ port: UInt16) -> HubServerError {
    let reason = String(cString: strerror(errno))
    return HubServerError(
      .listenFailed,
      "\(address) port \(port) cannot be listened on: \(reason); choose another, or port 0")
  }
}

import Dispatch
package import Foundation
import Glibc
import Synchronization
import Testing

/// A request as it came in, byte for byte but for its split.
package struct RawRequest: Sendable {
  /// Request line and header lines, without the empty line behind them.
  package let lines: [String]
  package let body: Data

  package var requestLine: String { lines.first ?? "" }

  /// The values of a header, by its name in lower case.
  package func values(_ name: String) -> [String] {
    lines.dropFirst().compactMap { line in
      guard let colon = line.firstIndex(of: ":"), line[..<colon].lowercased() == name else {
        return nil
      }
      return String(line[line.index(after: colon)...].drop { $0 == " " })
    }
  }
}

/// A TCP server on loopback that does what a script says, well or badly, with each connection.
///
/// Every connection has a thread of its own, which runs the script and then closes it. The port is
/// the system's choice. ``stop()`` ends all threads and returns when they have ended.
package final class RawServer: Sendable {
  package struct SetupError: Error {
    let call: String
    let code: Int32
  }

  package let port: UInt16
  private let listener: Int32
  private let threads = DispatchGroup()
  private let state = Mutex(State())

  private struct State {
    var open: Set<Int32> = []
    var acceptedCount = 0
    var requests: [RawRequest] = []
    var isStopped = false
  }

  /// - Parameter script: What to do with a connection; it returns when the connection may close.
  package init(_ script: @escaping @Sendable (RawConnection) -> Void) throws {
    listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    guard listener >= 0 else { throw SetupError(call: "socket", code: errno) }
    var address = loopback(port: 0)
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let listener = self.listener
    let result = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
        bind(listener, generic, length) == 0 && listen(listener, 64) == 0
          && getsockname(listener, generic, &length) == 0
      }
    }
    guard result else {
      close(listener)
      throw SetupError(call: "bind", code: errno)
    }
    port = UInt16(bigEndian: address.sin_port)
    threads.enter()
    Thread { [self] in
      acceptAll(script)
      threads.leave()
    }.start()
  }

  package var acceptedCount: Int { state.withLock { $0.acceptedCount } }

  /// Every request that a script has read.
  package var requests: [RawRequest] { state.withLock { $0.requests } }

  package func url(_ path: String = "", scheme: String = "http") throws -> URL {
    try #require(URL(string: "\(scheme)://127.0.0.1:\(port)\(path)"))
  }

  package func stop() {
    state.withLock { state in
      guard !state.isStopped else { return }
      state.isStopped = true
      // A thread closes its connection itself; until then the number cannot be another's.
      for connection in state.open { shutdown(connection, Int32(SHUT_RDWR)) }
      shutdown(listener, Int32(SHUT_RDWR))
    }
    threads.wait()
  }

  fileprivate func note(_ request: RawRequest) {
    state.withLock { $0.requests.append(request) }
  }

  private func acceptAll(_ script: @escaping @Sendable (RawConnection) -> Void) {
    defer { close(listener) }
    while true {
      let connection = accept(listener, nil, nil)
      guard connection >= 0 else { return }
      let isTaken = state.withLock { state in
        guard !state.isStopped else { return false }
        state.acceptedCount += 1
        state.open.insert(connection)
        return true
      }
      guard isTaken else {
        close(connection)
        return
      }
      threads.enter()
      Thread { [self] in
        script(RawConnection(connection, server: self))
        state.withLock { state in
          state.open.remove(connection)
          close(connection)
        }
        threads.leave()
      }.start()
    }
  }
}

/// One connection of a ``RawServer``, in its script.
package final class RawConnection {
  private let descriptor: Int32
  private let server: RawServer
  private var unread: [UInt8] = []

  fileprivate init(_ descriptor: Int32, server: RawServer) {
    self.descriptor = descriptor
    self.server = server
  }

  /// Reads one request with its body.
  /// - Returns: Nil if the client has closed the connection.
  package func readRequest() -> RawRequest? {
    let end = Array("\r\n\r\n".utf8)
    var head: Range<Int>?
    while head == nil {
      head = unread.firstRange(of: end)
      if head == nil, !fill() { return nil }
    }
    guard let head else { return nil }
    let text = String(decoding: unread[..<head.lowerBound], as: UTF8.self)
    unread.removeSubrange(..<head.upperBound)
    let lines = text.split(separator: "\r\n", omittingEmptySubsequences: false).map(String.init)
    let length = RawRequest(lines: lines, body: Data()).values("content-length").first
    let count = length.flatMap { Int($0) } ?? 0
    while unread.count < count {
      guard fill() else { return nil }
    }
    let request = RawRequest(lines: lines, body: Data(unread[..<count]))
    unread.removeSubrange(..<count)
    server.note(request)
    return request
  }

  /// Sends everything.
  /// - Returns: False if the client does not take it any more.
  @discardableResult
  package func send(_ bytes: some Collection<UInt8>) -> Bool {
    let bytes = Array(bytes)
    var sent = 0
    while sent < bytes.count {
      let count = bytes[sent...].withUnsafeBytes { buffer in
        Glibc.send(descriptor, buffer.baseAddress, buffer.count, Int32(MSG_NOSIGNAL))
      }
      guard count > 0 else { return false }
      sent += count
    }
    return true
  }

  @discardableResult
  package func send(_ text: String) -> Bool { send(Array(text.utf8)) }

  /// Sends a whole answer.
  package func answer(
    _ status: String = "200 OK", headers: [String] = [], body: some Collection<UInt8> = []
  ) {
    let head = ["HTTP/1.1 \(status)", "Content-Length: \(body.count)"] + headers
    send(head.joined(separator: "\r\n") + "\r\n\r\n")
    send(body)
  }

  /// Lets another server on loopback answer a request, and gives that answer on as it is.
  package func relay(_ request: RawRequest, to port: UInt16) {
    let other = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(other) }
    var address = loopback(port: port)
    let length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isConnected = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(other, $0, length) == 0
      }
    }
    guard isConnected else { return }
    // Its end is the end of the answer.
    let head = (request.lines + ["Connection: close"]).joined(separator: "\r\n") + "\r\n\r\n"
    let bytes = Array(head.utf8) + Array(request.body)
    guard Glibc.send(other, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count else { return }
    var buffer = [UInt8](repeating: 0, count: 64 << 10)
    while true {
      let count = recv(other, &buffer, buffer.count, 0)
      guard count > 0, send(buffer[..<count]) else { return }
    }
  }

  /// Answers requests until the client closes the connection.
  package func serve(_ answer: (RawRequest) -> Void) {
    while let request = readRequest() { answer(request) }
  }

  /// Waits until the client closes the connection.
  package func waitForEnd() {
    while fill() {}
  }

  /// Takes no byte until the connection is torn down: what was sent stays in the buffers of the
  /// system, which become full.
  package func holdWithoutReading() {
    var descriptors = [pollfd(fd: descriptor, events: 0, revents: 0)]
    _ = poll(&descriptors, 1, -1)
  }

  /// Waits until the client closes the connection, for a moment at most.
  /// - Returns: True if it did.
  package func isEnded(within milliseconds: Int32) -> Bool {
    var descriptors = [pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)]
    guard poll(&descriptors, 1, milliseconds) > 0 else { return false }
    return !fill()
  }

  private func fill() -> Bool {
    var buffer = [UInt8](repeating: 0, count: 64 << 10)
    let count = recv(descriptor, &buffer, buffer.count, 0)
    guard count > 0 else { return false }
    unread.append(contentsOf: buffer[..<count])
    return true
  }
}

/// A port on which nothing listens: it was the system's choice, and was given back.
package func unusedPort() throws -> UInt16 {
  let server = try RawServer { _ in }
  defer { server.stop() }
  return server.port
}

private func loopback(port: UInt16) -> sockaddr_in {
  var address = sockaddr_in()
  address.sin_family = sa_family_t(AF_INET)
  address.sin_port = port.bigEndian
  address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
  return address
}

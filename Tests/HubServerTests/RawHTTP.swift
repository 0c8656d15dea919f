import Foundation
import HubProtocol

/// An answer as it came over the wire.
struct RawAnswer: Sendable {
  var status: Int
  var headers: [HeaderField]
  var body: Data

  /// The only value of a header; nil if it is not there or there twice.
  func header(_ name: String) -> String? {
    let values = HubResponse(status: status, headers: headers, body: body).values(of: name)
    return values.count == 1 ? values[0] : nil
  }

  /// The code of a problem, or nil.
  var code: String? { (try? HubProblem(decoding: body))?.code }

  /// The body as a message of the protocol.
  func message<Message: HubMessage>(
    _ type: Message.Type, as format: WireFormat = .json
  ) throws -> Message {
    try Message(decoding: body, as: format)
  }
}

/// Why there is no answer.
enum RawHTTPError: Error, Equatable {
  case notConnected
  case ended(afterByteCount: Int)
}

/// A connection to a hub that sends what it is told and checks nothing.
final class RawConnection: Sendable {
  private let descriptor: Int32

  init(port: Int) throws {
    descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = in_port_t(UInt16(port)).bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    let result = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    guard result == 0 else { throw RawHTTPError.notConnected }
    var limit = timeval(tv_sec: 30, tv_usec: 0)
    setsockopt(
      descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
  }

  deinit { close(descriptor) }

  /// Sends bytes; a peer that has closed is no error, its answer may still be read.
  func send(_ bytes: Data) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes {
        Foundation.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      guard count > 0 else { return }
      rest = rest.dropFirst(count)
    }
  }

  /// Reads one answer.
  func receive(isHead: Bool = false) throws -> RawAnswer {
    var bytes = Data()
    var answer: RawAnswer?
    var headEnd = 0
    while true {
      if answer == nil, let end = bytes.range(of: Data("\r\n\r\n".utf8)) {
        answer = RawConnection.head(bytes[..<end.lowerBound])
        headEnd = end.upperBound
      }
      if var answer {
        let length = answer.header("Content-Length").flatMap { Int($0) } ?? 0
        if isHead || bytes.count - headEnd >= length {
          answer.body = Data(bytes[headEnd...].prefix(isHead ? 0 : length))
          return answer
        }
      }
      var buffer = [UInt8](repeating: 0, count: 64 << 10)
      let count = recv(descriptor, &buffer, buffer.count, 0)
      guard count > 0 else { throw RawHTTPError.ended(afterByteCount: bytes.count) }
      bytes.append(contentsOf: buffer[..<count])
    }
  }

  /// Whatever has come, at least one byte; nil once the hub has ended the connection.
  func receiveSome() -> Data? {
    var buffer = [UInt8](repeating: 0, count: 64 << 10)
    let count = recv(descriptor, &buffer, buffer.count, 0)
    return count > 0 ? Data(buffer[..<count]) : nil
  }

  /// Says that nothing more will be sent; an answer can still be read.
  func endSending() { shutdown(descriptor, Int32(SHUT_WR)) }

  /// Whether the hub ends the connection.
  func isEnded() -> Bool {
    var byte: UInt8 = 0
    return recv(descriptor, &byte, 1, 0) <= 0
  }

  private static func head(_ bytes: Data) -> RawAnswer {
    let lines = String(decoding: bytes, as: UTF8.self).components(separatedBy: "\r\n")
    let status = lines[0].split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
    let headers = lines.dropFirst().map { line in
      let parts = line.split(separator: ":", maxSplits: 1)
      return HeaderField(
        String(parts[0]), parts.count > 1 ? parts[1].trimmingCharacters(in: .whitespaces) : "")
    }
    return RawAnswer(status: status, headers: headers, body: Data())
  }
}

/// Runs blocking work on a thread of its own: the hub under test needs those of tasks and queues.
func blocking<Value: Sendable>(
  _ body: @escaping @Sendable () throws -> Value
) async throws -> Value {
  try await withCheckedThrowingContinuation { continuation in
    Thread.detachNewThread { continuation.resume(with: Result { try body() }) }
  }
}

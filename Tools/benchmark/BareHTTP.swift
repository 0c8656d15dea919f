import CBench
import Foundation
import HubProtocol
import Measuring

/// The bare exchange of bytes over HTTP, in C: what no client and no server can do without.
enum BareHTTP {
  /// Sends the same requests as were heard, one after another.
  /// - Parameter url: of each; by default the hub's own.
  static func repeating(
    _ exchanges: [Wiretap.Exchange], headers: [HeaderField],
    to url: (Wiretap.Exchange) -> String
  ) throws -> Pass {
    let urls = PathList(exchanges.map(url))
    let fields = PathList(headers.map { "\($0.name): \($0.value)" })
    let bodies = exchanges.map { BodyMemory($0.request.body) }
    let requests = exchanges.indices.map { index in
      cbench_exchange(
        url: urls.pointers[index], body: bodies[index].address, body_size: bodies[index].count)
    }
    let pass = withExtendedLifetime(bodies) {
      cbench_http_exchange(requests, requests.count, fields.pointers, fields.count)
    }
    let made = try Pass(pass, .c, message: cbench_http_message)
    let expected = exchanges.reduce(0) { $0 + $1.answerByteCount }
    guard made.operations == exchanges.count, made.readerOperations == expected else {
      throw Disagreement(
        sentence: "c: HTTP: \(made.operations) of \(exchanges.count) answers with "
          + "\(made.readerOperations) of \(expected) bytes")
    }
    return made
  }
}

/// A body where C finds it.
private final class BodyMemory {
  let address: UnsafeRawPointer?
  let count: Int
  private let memory: UnsafeMutableRawBufferPointer?

  init(_ body: Data?) {
    memory = body.map { body in
      let memory = UnsafeMutableRawBufferPointer.allocate(
        byteCount: max(body.count, 1), alignment: 16)
      body.withUnsafeBytes { memory.copyMemory(from: $0) }
      return memory
    }
    address = memory.map { UnsafeRawPointer($0.baseAddress) } ?? nil
    count = body?.count ?? 0
  }

  deinit { memory?.deallocate() }
}

/// A server in C that takes bodies and answers bytes.
final class EchoServer {
  private let server: OpaquePointer
  private let port: UInt16

  init() throws {
    var port: UInt16 = 0
    guard let server = cbench_echo_start(&port) else {
      throw BenchFailure(sentence: "c: the server cannot be started")
    }
    self.server = server
    self.port = port
  }

  deinit { cbench_echo_stop(server) }

  /// Where so many bytes are answered.
  func url(answering byteCount: Int) -> String { "http://127.0.0.1:\(port)/\(byteCount)" }
}

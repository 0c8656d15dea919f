import CBench
import Foundation
import HubProtocol
import ProfileSync
import Synchronization

/// Listens to what goes to a hub and comes back, and when.
final class Wiretap: HubTransport {
  /// One exchange.
  struct Exchange: Sendable {
    var request: HubRequest
    var answerByteCount: Int
    /// On the monotonic clock, in nanoseconds.
    var begun: UInt64
    var ended: UInt64

    /// The path without the query.
    var path: Substring { request.target.prefix { $0 != "?" } }
  }

  private let hub: any HubTransport
  private let log = Mutex<[Exchange]>([])
  /// Called before each request.
  private let before: @Sendable (HubRequest) async throws -> Void

  init(
    _ hub: any HubTransport,
    before: @escaping @Sendable (HubRequest) async throws -> Void = { _ in }
  ) {
    self.hub = hub
    self.before = before
  }

  /// What was heard since the last time.
  func take() -> [Exchange] {
    log.withLock { log in
      defer { log = [] }
      return log
    }
  }

  func send(_ request: HubRequest) async throws(TransportError) -> HubResponse {
    do { try await before(request) } catch {
      throw TransportError(code: .other, description: "\(error)")
    }
    let begun = cbench_now()
    let response = try await hub.send(request)
    let exchange = Exchange(
      request: request, answerByteCount: response.body.count, begun: begun, ended: cbench_now())
    log.withLock { $0.append(exchange) }
    return response
  }
}

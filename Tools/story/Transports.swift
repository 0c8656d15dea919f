import Foundation
import Holdfast
import Synchronization

/// A device without a network.
struct Offline: HubTransport {
  func send(_ request: HubRequest) async throws(TransportError) -> HubResponse {
    throw TransportError(code: .unreachable, description: "the device is offline")
  }
}

/// The real way to the hub, which lets something happen after a given number of pages.
final class Interrupted: HubTransport {
  private let hub: HubConnection
  private let pages: Int
  private let count = Mutex(0)
  private let happens: @Sendable () -> Void

  init(_ hub: HubConnection, afterPages pages: Int, happens: @escaping @Sendable () -> Void) {
    self.hub = hub
    self.pages = pages
    self.happens = happens
  }

  /// How many pages were asked for.
  var pageCount: Int { count.withLock { $0 } }

  func send(_ request: HubRequest) async throws(TransportError) -> HubResponse {
    let response = try await hub.send(request)
    guard request.target.hasPrefix("/v1/changes") else { return response }
    let isNow = count.withLock { count in
      count += 1
      return count == pages
    }
    if isNow { happens() }
    return response
  }
}

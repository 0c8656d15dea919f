import Foundation
import Holdfast
import Synchronization

/// The real way to the hub, which keeps a copy of every request by whose token it bears: also of those
/// that the hub refuses and never looks at.
final class Recorded: HubTransport {
  private let hub: HubConnection
  private let directory: URL
  private let owners: [String: String]
  private let count = Mutex(0)

  /// - Parameter owners: the account that each token belongs to.
  init(_ hub: HubConnection, into directory: URL, owners: [String: String]) throws {
    self.hub = hub
    self.directory = directory
    self.owners = owners
    for owner in owners.values {
      try FileManager.default.createDirectory(
        at: directory.appending(path: owner), withIntermediateDirectories: true)
    }
  }

  func send(_ request: HubRequest) async throws(TransportError) -> HubResponse {
    do {
      try record(request)
    } catch {
      throw TransportError(code: .other, description: "a request could not be recorded")
    }
    return try await hub.send(request)
  }

  private func record(_ request: HubRequest) throws {
    let bearer = request.headers.first { $0.name == HubHeader.authorization }?.value ?? ""
    guard let owner = owners[String(bearer.dropFirst("Bearer ".count))] else { return }
    let number = count.withLock { count in
      count += 1
      return count
    }
    var bytes = Data("\(request.method) \(request.target)\n\n".utf8)
    bytes.append(request.body ?? Data())
    try bytes.write(to: directory.appending(path: "\(owner)/\(number)"))
  }
}

/// A device without a network.
struct Offline: HubTransport {
  func send(_ request: HubRequest) async throws(TransportError) -> HubResponse {
    throw TransportError(code: .unreachable, description: "the device is offline")
  }
}

/// The real way to the hub, which lets something happen after a given number of pages.
final class Interrupted: HubTransport {
  private let hub: any HubTransport
  private let pages: Int
  private let count = Mutex(0)
  private let happens: @Sendable () -> Void

  init(_ hub: any HubTransport, afterPages pages: Int, happens: @escaping @Sendable () -> Void) {
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

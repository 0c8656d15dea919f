import Foundation
import HubProtocol
import Synchronization

/// Copies of a hub's data file and of a client's, taken while both stand still.
final class Snapshots: Sendable {
  private let hubFile: String
  private let clientFile: String
  private let directory: String
  private let count = Mutex(0)

  init(of hubFile: String, _ clientFile: String, in directory: String) {
    self.hubFile = hubFile
    self.clientFile = clientFile
    self.directory = directory
  }

  func hub(_ number: Int) -> String { "\(directory)/hub-\(number)" }
  func client(_ number: Int) -> String { "\(directory)/client-\(number)" }

  func take() throws {
    let number = count.withLock { count in
      defer { count += 1 }
      return count
    }
    try DataCopy.make(of: hubFile, in: hub(number))
    try DataCopy.make(of: clientFile, in: client(number))
  }

  /// Removes all copies behind one.
  func removeAll(after number: Int) throws {
    for number in number + 1..<max(number + 1, count.withLock { $0 }) {
      try FileManager.default.removeItem(atPath: hub(number))
      try FileManager.default.removeItem(atPath: client(number))
    }
  }
}

/// Waits until a pass has settled the batches whose answers it has: each is a commit, behind the one
/// that comes before the first batch.
final class SettledBatches: Sendable {
  private let store: SignedInStore
  private let next: Mutex<UInt64>

  /// No pass runs yet.
  init(_ store: SignedInStore) {
    self.store = store
    next = Mutex(store.commitCount + 1)
  }

  /// Call it with each batch that is about to go, and once behind the last.
  func waitForNext() async throws {
    let wanted = next.withLock { next in
      defer { next += 1 }
      return next
    }
    while store.commitCount < wanted { try await Task.sleep(for: .microseconds(200)) }
  }
}

/// How many commits an area had when its pass began to pull.
final class CommitsAtPull: Sendable {
  private let store: SignedInStore
  private let found = Mutex<UInt64?>(nil)

  init(_ store: SignedInStore) { self.store = store }

  func note(_ request: HubRequest) {
    guard request.target.hasPrefix("/v1/changes") else { return }
    let now = store.commitCount
    found.withLock { $0 = $0 ?? now }
  }

  var count: UInt64 { found.withLock { $0 } ?? store.commitCount }
}

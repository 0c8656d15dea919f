package import Foundation
package import HubProtocol
package import ProfileStore
package import ProfileSync
import Synchronization

/// One device: a store directory, a session, a way to the hub.
package final class Device: Sendable {
  package let hub: TestHub
  package let directory: TemporaryDirectory
  package let session: AppSession
  package let wire: Wire
  package let registry: ProfileRegistry

  /// - Parameters:
  ///   - directory: of a device that was there before; a new one by default.
  ///   - now: the device's clock.
  package init(
    _ hub: TestHub, keeping recordKeeping: ProfileRegistry.RecordKeeping = .area,
    in directory: TemporaryDirectory? = nil, limits: StoreLimits = StoreLimits(),
    session: AppSession = AppSession(), now: @escaping @Sendable () -> Date = { Date() }
  ) throws {
    self.hub = hub
    self.directory = try directory ?? TemporaryDirectory()
    self.session = session
    wire = Wire(hub)
    session.signOut()
    registry = try ProfileRegistry(
      directory: self.directory.url, session: session,
      configuration: .init(recordKeeping: recordKeeping, limits: limits, now: now))
    registry.connect(to: wire)
  }

  /// Signs an account in and opens its area; then forgets the requests of that.
  package func signIn(_ name: String = "alice") async throws -> Person {
    let token = try hub.token(for: name)
    let account = try await registry.verify(token: token, clientName: "test")
    session.signIn(account, token: token)
    let profile = try await registry.profile(for: account)
    wire.clear()
    hub.watch(profile.area, in: directory)
    return Person(account: account, profile: profile, device: self)
  }
}

/// An account on a device, with the store of its app.
package struct Person: Sendable {
  package let account: VerifiedAccount
  package let profile: Profile
  package let device: Device
  package let app: AppStore

  /// Somebody whose profile was opened in another way than by ``Device/signIn(_:)``.
  package init(account: VerifiedAccount, profile: Profile, device: Device) {
    self.account = account
    self.profile = profile
    self.device = device
    app = AppStore(owner: account.bytes)
  }

  /// A device of its own that has written something and sent it.
  package static func withRecords(
    _ hub: TestHub, _ ids: [RecordID], _ payload: String = "first", name: String = "alice"
  ) async throws -> Person {
    let person = try await Device(hub).signIn(name)
    try await person.write(ids, payload)
    try await person.profile.synchronize(account: person.account)
    person.device.wire.clear()
    return person
  }

  /// Puts the records into the outbox.
  package func write(_ ids: [RecordID], _ payload: String) async throws {
    try await profile.enqueue(
      ids.map { .put($0, Data(payload.utf8)) }, account: account)
  }

  package func delete(_ ids: [RecordID]) async throws {
    try await profile.enqueue(ids.map { .delete($0) }, account: account)
  }

  /// Writes and sends.
  package func send(_ ids: [RecordID], _ payload: String) async throws {
    try await write(ids, payload)
    try await profile.synchronize(account: account)
  }

  /// A pass of an app with a store of its own, which saves each batch.
  @discardableResult
  package func pass(
    replayFromStart: Bool = false, at position: BatchPosition? = nil
  ) async throws -> SyncReport {
    try await profile.synchronize(
      account: account, replayFromStart: replayFromStart, appPosition: position
    ) { batch in try app.save(batch) }
  }

  /// A replay and all its legs.
  @discardableResult
  package func replay(at position: BatchPosition? = nil) async throws -> [SyncReport] {
    var reports = [try await pass(replayFromStart: true, at: position)]
    while let continuation = reports.last?.continuation {
      reports.append(try await leg(continuation))
    }
    return reports
  }

  /// The next leg of a replay.
  package func leg(_ continuation: ReplayContinuation) async throws -> SyncReport {
    try await profile.synchronize(account: account, continuing: continuation) {
      try app.save($0)
    }
  }

  /// What the area has of the records: text by ID.
  package func texts() throws -> [RecordID: String] {
    Dictionary(
      uniqueKeysWithValues: try profile.records().map {
        ($0.id, String(decoding: $0.payload, as: UTF8.self))
      })
  }

  /// What a pass may change, read from the area itself.
  package func standing() throws -> Standing {
    let facts = try profile.area.facts()
    // Whoever is signed in on the device at that moment.
    let session = AppSession()
    session.signIn(account, token: "")
    let reader = Profile(area: profile.area, registry: profile.registry, session: session)
    return Standing(
      cursor: facts.cursor, scan: facts.scan, position: facts.position,
      records: try reader.records(), outbox: try reader.outbox().map(\.mutation))
  }
}

/// What a pass that stopped may not have changed.
package struct Standing: Hashable {
  package var cursor: Cursor?
  package var scan: ScanState?
  package var position: UInt64
  package var records: [Record]
  package var outbox: [UUID]
}

/// The store of an app's own: rows, and the position that it saved with them.
package final class AppStore: Sendable {
  package struct Row: Hashable, Sendable {
    package var version: UInt64
    package var text: String

    package init(version: UInt64, text: String) {
      self.version = version
      self.text = text
    }
  }

  package struct Batch: Sendable {
    package var position: BatchPosition
    package var isReplay: Bool
    package var changes: [Change]
  }

  private struct Content: Sendable {
    var owner: Data
    var rows: [RecordID: Row] = [:]
    var position = BatchPosition.start
    var batches: [Batch] = []
  }

  private let content: Mutex<Content>

  package init(owner: Data) { content = Mutex(Content(owner: owner)) }

  package var rows: [RecordID: Row] { content.withLock(\.rows) }
  package var position: BatchPosition { content.withLock(\.position) }
  /// The batches that were saved.
  package var batches: [Batch] { content.withLock(\.batches) }
  /// All changes that were saved, in order.
  package var changes: [Change] { batches.flatMap(\.changes) }
  package var texts: [RecordID: String] { rows.mapValues(\.text) }

  /// Saves a batch in "one transaction".
  package func save(_ batch: borrowing ChangeBatch) throws {
    let owner = content.withLock(\.owner)
    let saved = Batch(
      position: batch.position, isReplay: batch.isReplay,
      changes: try batch.changes(localOwner: owner).copies())
    content.withLock { content in
      for change in saved.changes {
        content.rows[change.record] = change.payload.map {
          Row(version: change.version, text: String(decoding: $0, as: UTF8.self))
        }
      }
      content.position = saved.position
      content.batches.append(saved)
    }
  }

  /// The rows and the position of an earlier time: a file that was restored from a backup.
  package func restore(rows: [RecordID: Row], position: BatchPosition) {
    content.withLock { content in
      content.rows = rows
      content.position = position
      content.batches = []
    }
  }

  package func forgetBatches() { content.withLock { $0.batches = [] } }
}

import Foundation
import HoldfastTesting
import HubProtocol
import ProfileStore
import ProfileSync

/// One launch of an app with a store of its own: a file with a document for each account. It does
/// everything right, but for one fault.
final class NotesApp {
  enum Fault: String, CaseIterable {
    case none
    case insertsOnly
    case refusesWhatItHasSeen
    case savesRowByRow
    case asksFirstAndSavesRowByRow
    case hidesFailures
    case staysBroken
    case leavesWhenCancelled
    case trustsItsMemory
    case savesLater
    case savesForWhoIsSignedIn
    case believesTheProfile
    case keysByRecordAlone
    case asksAboutNothing
    case asksAboutItsRows
    case asksAboutItsRowsAndShowsEdits
    case asksTheChangeAlone
    case takesParked
    case buriesForEver
    case ignoresDeletions
    case needsRowsToDelete
    case wantsTombstones
    case believesReplays
    case clearsInReplays
    case takesOnlyNewer
    case leavesOutWhatItHasSeen
    case keepsPositionsElsewhere
    case keepsPositionsInMemory
    case savesNoPosition
    case failsWithoutChanges
    case skipsWithoutChanges
    case takesEmptyForDeleted
    case keysByText
  }

  struct Refused: Error {}

  private struct Row: Codable {
    var payload: Data
    var version: UInt64
    var account: Data
  }

  private struct Document: Codable {
    var owner: Data
    var rows: [Data: Row] = [:]
    var everSeen: Set<Data> = []
    var versions: [Data: UInt64] = [:]
    var buried: Set<Data> = []
    var position: UInt64 = 0
  }

  private let fault: Fault
  private let file: URL
  private var documents: [Data: Document] = [:]
  // What only this launch knows.
  private var current: AuditedApp.Place?
  private var lastPosition: BatchPosition?
  private var rowsInMemory: Set<Data> = []
  private var writesLeft: Int?
  private var hasFailed = false
  private var hiddenFailures: [any Error] = []

  init(in directory: URL, _ fault: Fault) throws {
    self.fault = fault
    file = directory.appending(path: "notes")
    guard FileManager.default.fileExists(atPath: file.path) else { return }
    documents = try PropertyListDecoder().decode(
      [Data: Document].self, from: Data(contentsOf: file))
  }

  private func commit(_ key: Data, _ document: Document) throws {
    // As one whose transaction is still open, for want of a rollback.
    if fault == .staysBroken, hasFailed { throw Refused() }
    if let left = writesLeft {
      guard left > 1 else {
        hasFailed = true
        throw Refused()
      }
      writesLeft = left - 1
    }
    documents[key] = document
    if fault == .savesLater { return }
    try PropertyListEncoder().encode(documents).write(to: file)
  }

  // MARK: Applying

  private func key(_ account: VerifiedAccount) -> Data {
    fault == .keysByRecordAlone ? Data() : account.bytes
  }

  private func document(of account: VerifiedAccount) -> Document {
    documents[key(account)] ?? Document(owner: account.bytes)
  }

  private func rowKey(_ id: RecordID) -> Data {
    // Two strings that Swift takes for equal have one normal form.
    Data(
      fault == .keysByText ? Array(id.text.precomposedStringWithCanonicalMapping.utf8) : id.bytes)
  }

  func apply(_ batch: borrowing ChangeBatch, _ place: AuditedApp.Place) throws {
    guard fault == .hidesFailures else { return try save(batch, place) }
    do { try save(batch, place) } catch { hiddenFailures.append(error) }
  }

  private func save(_ batch: borrowing ChangeBatch, _ place: AuditedApp.Place) throws {
    let isCurrent = fault == .savesForWhoIsSignedIn
    let account = isCurrent ? (current ?? place).account : place.account
    var document = document(of: account)
    var owner = document.owner
    if isCurrent || fault == .keysByRecordAlone { owner = place.account.bytes }
    if fault == .believesTheProfile { owner = try place.profile.owner?.bytes ?? owner }
    let changes = try batch.changes(localOwner: owner).copies()
    if changes.isEmpty {
      if fault == .failsWithoutChanges { throw Refused() }
      if fault == .skipsWithoutChanges { return }
    }
    if fault == .refusesWhatItHasSeen, !batch.isReplay {
      if let lastPosition, batch.position <= lastPosition { throw Refused() }
    }
    if fault == .clearsInReplays, batch.isReplay { document.rows = [:] }
    var waiting: Set<RecordID> = []
    if fault == .asksFirstAndSavesRowByRow {
      for change in changes where try batch.isPending(change.record) {
        waiting.insert(change.record)
      }
    }
    for change in changes where !waiting.contains(change.record) {
      if fault == .leavesWhenCancelled, Task.isCancelled { break }
      try take(change, in: batch, for: account, &document)
      if fault == .savesRowByRow || fault == .asksFirstAndSavesRowByRow {
        try commit(key(account), document)
      }
    }
    if fault != .savesNoPosition { document.position = batch.position.number }
    try commit(key(account), document)
    lastPosition = batch.position
    if fault == .keepsPositionsElsewhere {
      try Data("\(batch.position.number)".utf8).write(to: elsewhere)
    }
  }

  private func take(
    _ change: Change, in batch: borrowing ChangeBatch, for account: VerifiedAccount,
    _ document: inout Document
  ) throws {
    let row = rowKey(change.record)
    let isSeen = document.versions[row] == change.version
    if fault == .leavesOutWhatItHasSeen, isSeen, !change.isInferred { return }
    if fault == .takesOnlyNewer, change.version < document.rows[row]?.version ?? 0 { return }
    document.versions[row] = change.version
    let isNew = document.everSeen.insert(row).inserted
    if try isPending(change, in: batch, isThere: document.rows[row] != nil) { return }
    if change.isDeleted || (fault == .takesEmptyForDeleted && change.payload?.isEmpty == true) {
      if fault == .needsRowsToDelete, isNew { throw Refused() }
      if fault == .ignoresDeletions || (fault == .wantsTombstones && change.isInferred) { return }
      document.buried.insert(row)
      document.rows[row] = nil
      return
    }
    let before = document.rows[row]
    if fault == .buriesForEver, document.buried.contains(row) { return }
    if fault == .insertsOnly, before != nil { throw Refused() }
    if fault == .trustsItsMemory, !batch.isReplay, rowsInMemory.insert(row).inserted,
      before?.version == change.version
    {
      throw Refused()
    }
    document.rows[row] = Row(
      payload: change.payload ?? Data(), version: change.version, account: account.bytes)
  }

  private func isPending(
    _ change: Change, in batch: borrowing ChangeBatch, isThere: Bool
  ) throws -> Bool {
    switch fault {
    case .asksAboutNothing, .asksFirstAndSavesRowByRow: false
    case .asksTheChangeAlone: change.localEdit != .none
    case .asksAboutItsRows, .asksAboutItsRowsAndShowsEdits:
      try isThere && batch.isPending(change.record)
    case .takesParked: try change.localEdit != .parked && batch.isPending(change.record)
    case .believesReplays: try !batch.isReplay && batch.isPending(change.record)
    default: try batch.isPending(change.record)
    }
  }

  // MARK: Positions

  private var elsewhere: URL {
    file.deletingLastPathComponent().deletingLastPathComponent().appending(path: "position")
  }

  private func position(_ place: AuditedApp.Place) throws -> BatchPosition {
    switch fault {
    case .keepsPositionsInMemory: return lastPosition ?? .start
    case .keepsPositionsElsewhere:
      guard FileManager.default.fileExists(atPath: elsewhere.path) else { return .start }
      let text = String(decoding: try Data(contentsOf: elsewhere), as: UTF8.self)
      return BatchPosition(UInt64(text) ?? 0)
    default: return BatchPosition(document(of: place.account).position)
    }
  }

  // MARK: As the audit sees it

  private nonisolated(nonsending) func edit(
    _ record: RecordID, _ payload: Data?, _ place: AuditedApp.Place
  ) async throws {
    var document = document(of: place.account)
    document.rows[rowKey(record)] = payload.map {
      Row(payload: $0, version: 0, account: place.account.bytes)
    }
    try commit(key(place.account), document)
    let mutation: Mutation = payload.map { .put(record, $0) } ?? .delete(record)
    try await place.profile.enqueue(mutation, account: place.account)
  }

  private func contents(_ place: AuditedApp.Place) throws -> [RecordID: Data] {
    var contents: [RecordID: Data] = [:]
    for (id, row) in document(of: place.account).rows where row.account == place.account.bytes {
      contents[try RecordID(bytes: id)] = row.payload
    }
    return contents
  }

  /// - Parameter showsEdits: it changes its rows itself when a person edits.
  func audited(showsEdits: Bool = true) -> AuditedApp {
    var app = AuditedApp(
      applyChanges: { batch, place in try self.apply(batch, place) },
      contents: { place in try self.contents(place) },
      accountChanged: { place in
        self.current = place
        self.lastPosition = nil
      },
      failWrite: { number, _ in self.writesLeft = number })
    if fault != .savesLater { app.position = { place in try self.position(place) } }
    if showsEdits {
      app.edit = { record, payload, place in try await self.edit(record, payload, place) }
    }
    return app
  }
}

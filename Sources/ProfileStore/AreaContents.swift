package import Foundation
package import HubProtocol
import LMDB

/// What an area holds, as numbers and places.
package struct AreaContents: Sendable {
  /// A table and how many entries it has; an app's own are named `app.…`.
  package struct TableSize: Sendable, Hashable {
    /// The table's name in the environment.
    package var name: String
    /// How many entries it has.
    package var entryCount: Int

    package init(name: String, entryCount: Int) {
      self.name = name
      self.entryCount = entryCount
    }
  }

  /// One adoption, by the area that took the content over.
  package struct Adoption: Sendable, Hashable {
    /// The adoption's UUID.
    package var id: UUID
    /// What it left behind.
    package var receipt: AdoptionReceipt

    package init(id: UUID, receipt: AdoptionReceipt) {
      self.id = id
      self.receipt = receipt
    }
  }

  /// Who adopts, or has adopted, this area; nil unless it is frozen or moved.
  package struct Adopter: Sendable, Hashable {
    /// The account.
    package var account: VerifiedAccount
    /// The adoption's UUID.
    package var id: UUID

    package init(account: VerifiedAccount, id: UUID) {
      self.account = account
      self.id = id
    }
  }

  /// The hub knows the client.
  package var isClientRegistered = false
  /// The file is not the one that the area last wrote in: at the next open it becomes a new client.
  package var isCopy = false
  /// The hub said that the account is erased there.
  package var isErasedAtHub = false
  /// The newest high water known.
  package var highWater: Cursor?
  /// The position of the last batch that the app accepted.
  package var position: UInt64 = 0
  /// A scan from zero has been finished once.
  package var hasFinishedScan = false
  /// The scan from zero that is under way.
  package var scan: ScanState?
  /// The epochs that were left.
  package var lineage: [LineageEntry] = []
  /// What the hub announced.
  package var hubLimits: HubLimits?
  /// How many of the known records are tombstones.
  package var tombstones = 0
  /// How many mutations are parked, by reason.
  package var parked: [Parked.Reason: Int] = [:]
  /// Acknowledged mutations that are kept.
  package var acknowledged = 0
  /// Records that the hub lost with an epoch.
  package var lostAtHub = 0
  /// Versions of the hub that wait beside an edit.
  package var besideEdits = 0
  /// Caller-given mutation UUIDs that were settled and not struck off.
  package var settled = 0
  /// Adoptions into this area, oldest first.
  package var adoptions: [Adoption] = []
  /// Who adopts, or has adopted, this area.
  package var adopter: Adopter?
  /// All tables, sorted by name.
  package var tables: [TableSize] = []
  /// The map's size, in bytes.
  package var mapByteCount = 0
  /// Reader slots that were ever used at once.
  package var readerSlotCount = 0
  /// The most simultaneous readers of all processes.
  package var readerCountMax = 0
  /// The number of the last committed transaction.
  package var lastTransaction: UInt64 = 0

  /// Nothing is known.
  package init() {}
}

extension AreaContents {
  /// Reads everything in one snapshot.
  /// - Throws: `erased`; `damaged`, `storage`.
  /// - Cost: reads all metadata; with parked mutations the outbox, too.
  init(reading area: Area) throws {
    let names = try area.environment.tableNames()
    let sizes = try names.filter { $0 != AreaTables.editsName }.map {
      try area.environment.table($0, key: BytesCodec.self, value: BytesCodec.self)
    }
    self = try area.read { transaction in
      var contents = AreaContents()
      try contents.readPlaces(area.tables, transaction)
      try contents.readNumbers(area.tables, transaction)
      try contents.readAdoptions(area.tables, transaction)
      for table in sizes {
        contents.tables.append(
          TableSize(name: table.name, entryCount: try transaction.count(of: table)))
      }
      contents.tables.append(
        TableSize(
          name: AreaTables.editsName, entryCount: try transaction.count(of: area.tables.edits)))
      contents.tables.sort { $0.name < $1.name }
      contents.isCopy = try area.tables.file(transaction) != Files.identity(of: area.directory)
      return contents
    }
    let statistics = try area.environment.statistics()
    mapByteCount = statistics.mapByteCount
    readerSlotCount = statistics.readerSlotCount
    readerCountMax = statistics.readerCountMax
    lastTransaction = statistics.lastTransaction
  }

  private mutating func readPlaces(
    _ tables: AreaTables, _ transaction: borrowing ReadTransaction
  ) throws {
    isClientRegistered = try tables.client(transaction)?.isRegistered == true
    isErasedAtHub = try tables.number(.erasedAtHub, transaction) != 0
    highWater = try tables.cursor(.highWater, transaction)
    position = try tables.number(.position, transaction)
    hasFinishedScan = try tables.number(.hasFinishedScan, transaction) != 0
    scan = try tables.scan(transaction)
    lineage = try tables.lineage(transaction)
    hubLimits = try tables.hubLimits(transaction)
  }

  private mutating func readNumbers(
    _ tables: AreaTables, _ transaction: borrowing ReadTransaction
  ) throws {
    acknowledged = try transaction.count(of: tables.acknowledged)
    lostAtHub = try transaction.count(of: tables.lost)
    var settled = 0
    try transaction.scan(tables.mutations) { _, bytes in
      if try MutationPlaceCodec.decode(bytes) == .settled { settled += 1 }
      return .next
    }
    self.settled = settled
    var beside = 0
    var last: RecordID?
    try transaction.scan(tables.edits) { key, _ in
      let record = try RecordIDCodec.decode(key)
      guard record != last else { return .next }
      last = record
      if try transaction.value(of: record, in: tables.known)?.body != nil { beside += 1 }
      return .next
    }
    besideEdits = beside
    var tombstones = 0
    try transaction.scan(tables.known) { _, bytes in
      if try KnownRecordCodec.decode(bytes).applied?.isDeleted == true { tombstones += 1 }
      return .next
    }
    self.tombstones = tombstones
    guard try tables.totals(transaction).parked > 0 else { return }
    var parked: [Parked.Reason: Int] = [:]
    try transaction.scan(tables.outbox) { _, bytes in
      if let reason = try OutboxCodec.decode(bytes).parked?.reason {
        parked[reason, default: 0] += 1
      }
      return .next
    }
    self.parked = parked
  }

  private mutating func readAdoptions(
    _ tables: AreaTables, _ transaction: borrowing ReadTransaction
  ) throws {
    var adoptions: [Adoption] = []
    try transaction.scan(tables.adoptions) { key, bytes in
      adoptions.append(
        Adoption(id: try UUIDCodec.decode(key), receipt: try AdoptionReceiptCodec.decode(bytes)))
      return .next
    }
    self.adoptions = adoptions.sorted { $0.receipt.adoptedAt < $1.receipt.adoptedAt }
    switch try tables.state(transaction) {
    case .frozen(let adoption), .moved(let adoption):
      adopter = Adopter(account: try VerifiedAccount(reading: adoption.account), id: adoption.id)
    case .active, .erased: break
    }
  }
}

package import Foundation
package import LMDB
import Synchronization

/// What the registry notes of one area. The area is the truth, this is the index.
package struct AreaRow: Sendable, Hashable {
  package enum State: UInt8, Sendable {
    case owned = 1
    /// The current signed-out area.
    case unowned = 2
    /// A person declined it: listed, adopted only by name.
    case setAside = 3
    /// Adopted; its directory stays until it is erased by name.
    case moved = 4
  }

  package var state: State
  package var owner: Data?
  package var createdAt: Date

  package init(state: State, owner: Data?, createdAt: Date) {
    self.state = state
    self.owner = owner
    self.createdAt = createdAt
  }
}

/// Where the records of a store are, as registry and areas note it.
enum RecordKeepingMark: UInt8, Sendable {
  case area = 1
  case app = 2

  init(_ policy: StorePolicy) { self = policy.keepsRecords ? .area : .app }
}

/// What is about to be done to an area, written before it is done.
package struct Intent: Sendable, Hashable {
  package enum Kind: UInt8, Sendable {
    case provision = 1
    case bind = 2
    case adopt = 3
    case erase = 4
  }

  package var kind: Kind
  /// Bytes of the account; nil for a signed-out area.
  package var account: Data?
  /// For an adoption: its UUID, and the area that takes the content over.
  package var adoption: UUID?
  package var target: AreaID?

  package init(kind: Kind, account: Data? = nil, adoption: UUID? = nil, target: AreaID? = nil) {
    self.kind = kind
    self.account = account
    self.adoption = adoption
    self.target = target
  }
}

enum AreaRowCodec: StoredForm {
  typealias Value = AreaRow

  static func encoded(_ value: AreaRow) -> [UInt8] {
    var writer = ByteWriter()
    writer.write(value.state.rawValue)
    writer.write(value.owner) { $0.write($1) }
    writer.write(UInt64(max(0, value.createdAt.timeIntervalSince1970 * 1_000)))
    return writer.bytes
  }

  /// The state alone.
  static func state(_ bytes: RawSpan) throws(StoreError) -> AreaRow.State {
    var reader = ByteReader(bytes, of: "AreaRowCodec")
    guard let state = AreaRow.State(rawValue: try reader.readUInt8()) else { throw reader.damaged }
    return state
  }

  static func read(_ reader: inout ByteReader) throws(StoreError) -> AreaRow {
    guard let state = AreaRow.State(rawValue: try reader.readUInt8()) else { throw reader.damaged }
    return AreaRow(
      state: state,
      owner: try reader.readOptional { (reader) throws(StoreError) in
        Data(try reader.readBytes())
      }, createdAt: Date(timeIntervalSince1970: Double(try reader.readUInt64()) / 1_000))
  }
}

enum IntentCodec: StoredForm {
  typealias Value = Intent

  static func encoded(_ value: Intent) -> [UInt8] {
    var writer = ByteWriter()
    writer.write(value.kind.rawValue)
    writer.write(value.account) { $0.write($1) }
    writer.write(value.adoption) { $0.write($1) }
    writer.write(value.target?.uuid) { $0.write($1) }
    return writer.bytes
  }

  static func read(_ reader: inout ByteReader) throws(StoreError) -> Intent {
    guard let kind = Intent.Kind(rawValue: try reader.readUInt8()) else { throw reader.damaged }
    return Intent(
      kind: kind,
      account: try reader.readOptional { (reader) throws(StoreError) in
        Data(try reader.readBytes())
      },
      adoption: try reader.readOptional { (reader) throws(StoreError) in try reader.readUUID() },
      target: try reader.readOptional { (reader) throws(StoreError) in
        AreaID(uuid: try reader.readUUID())
      })
  }
}

/// The registry environment: which account owns which area, and what is about to be done.
package struct RegistryIndex: Sendable {
  /// Shared by all who have this registry open in the process: it is suspended for all of them.
  package let store: StoreEnvironment
  private let values: Table<TextCodec, BytesCodec>
  private let areas: Table<UUIDCodec, AreaRowCodec>
  /// Number of a group → ``OwnerGroup``.
  private let accounts: Table<UInt16Codec, BytesCodec>
  private let recentGroups = RecentGroups()
  private let intents: Table<UUIDCodec, IntentCodec>

  private struct WeakStore: Sendable { weak let store: StoreEnvironment? }
  private static let stores = Mutex<[WeakStore]>([])

  /// What this process has of a registry's environment, one for all who open it.
  private static func store(of environment: Environment) -> StoreEnvironment {
    stores.withLock { stores in
      stores.removeAll { $0.store == nil }
      if let known = stores.lazy.compactMap(\.store).first(where: {
        $0.environment === environment
      }) {
        return known
      }
      let made = StoreEnvironment(environment)
      stores.append(WeakStore(store: made))
      return made
    }
  }

  /// Opened beside a suspended one, an environment would not be that one again.
  private static func requireNotSuspended(_ path: String) throws(StoreError) {
    guard let file = Environment.dataFile(in: path) else { return }
    let isSuspended = stores.withLock { stores in
      stores.lazy.compactMap(\.store).contains {
        ($0.isSuspended || $0.refusesVisits) && $0.environment.dataFile == file
      }
    }
    if isSuspended { throw .suspended }
  }

  /// What is open now, or was last.
  package var environment: Environment { store.environment }

  private static let formatKey = "format"
  /// Of the registry; its areas have their own. Earlier ones had a row for each owner, then groups of
  /// another form.
  private static let format: UInt32 = 4
  /// The earliest that can be brought to it.
  private static let formatMin: UInt32 = 2
  /// The ID of the current signed-out area.
  private static let unownedKey = "unowned"
  /// The account whose sign-in decided nothing about the unowned data.
  private static let undecidedKey = "undecided"
  /// Who decided to keep the unowned data, and how much of it there was.
  private static let keptKey = "kept"
  /// ``RecordKeepingMark``, written together with the format.
  private static let keepingKey = "keeping"

  /// Opens it, or makes an empty one.
  /// - Throws: `newerFormat`, before anything is written; `storage`.
  init(at path: String, access: Environment.Access, limits: StoreLimits = StoreLimits()) throws {
    var configuration = Environment.Configuration()
    configuration.access = access
    configuration.sealedByteCountMax = limits.checkedByteCountMax
    do {
      try Self.requireNotSuspended(path)
      let environment = try Environment.open(at: path, configuration: configuration)
      store = Self.store(of: environment)
      guard access == .read || environment.configuration.access != .read else {
        throw StoreError.openForInspection
      }
      try Self.requireReadable(environment)
      values = try environment.table("values", key: TextCodec.self, value: BytesCodec.self)
      areas = try environment.table("areas", key: UUIDCodec.self, value: AreaRowCodec.self)
      accounts = try environment.table("accounts", key: UInt16Codec.self, value: BytesCodec.self)
      intents = try environment.table("intents", key: UUIDCodec.self, value: IntentCodec.self)
    } catch let error as LMDBError {
      throw StoreError(
        .storage,
        "the registry cannot be opened; if it is damaged, move the store's `registry` directory "
          + "away: it is rebuilt from the areas", cause: error)
    }
  }

  private static func requireReadable(_ environment: Environment) throws {
    guard try environment.tableNames().contains("values") else { return }
    let values = try environment.table("values", key: TextCodec.self, value: BytesCodec.self)
    let format = try environment.read { try Self.storedFormat($0, in: values) }
    guard let format, format > Self.format else { return }
    throw StoreError(
      .newerFormat,
      "the store has format \(format), this version reads up to \(Self.format): update the "
        + "program")
  }

  private static func storedFormat<T: Transaction & ~Copyable>(
    _ transaction: borrowing T, in values: Table<TextCodec, BytesCodec>
  ) throws -> UInt32? {
    try transaction.value(of: formatKey, in: values).map { bytes in
      bytes.reduce(0) { $0 << 8 | UInt32($1) }
    }
  }

  // MARK: Reading

  /// Everything the registry says, in one snapshot.
  package struct Snapshot: Sendable {
    package var areas: [AreaID: AreaRow] = [:]
    package var intents: [AreaID: Intent] = [:]
  }

  package func snapshot() throws -> Snapshot {
    try read { transaction in
      var snapshot = Snapshot()
      try transaction.scan(areas) { key, value in
        snapshot.areas[AreaID(uuid: try UUIDCodec.decode(key))] = try AreaRowCodec.decode(value)
        return .next
      }
      try transaction.scan(intents) { key, value in
        snapshot.intents[AreaID(uuid: try UUIDCodec.decode(key))] = try IntentCodec.decode(value)
        return .next
      }
      return snapshot
    }
  }

  /// Whether it was ever filled; one that was not has to be rebuilt from the areas.
  func isFilled() throws -> Bool {
    try read { try $0.contains(Self.formatKey, in: values) }
  }

  /// Where the records of this store are; nil only while it was not filled.
  func recordKeeping() throws -> RecordKeepingMark? {
    try read { try $0.value(of: Self.keepingKey, in: values) }
      .flatMap { $0.first.flatMap(RecordKeepingMark.init(rawValue:)) }
  }

  /// The area of an account, as the registry knows it. Constant cost.
  package func area(of owner: Data) throws -> AreaID? {
    let place = OwnerGroup.Place(owner)
    recentGroups.ask(for: place)
    return try read { try self.area(at: place, $0) }
  }

  private func area<T: Transaction & ~Copyable>(
    at place: OwnerGroup.Place, _ transaction: borrowing T
  ) throws -> AreaID? {
    guard let bytes = try transaction.bytes(of: place.group, in: accounts) else { return nil }
    try recentGroups.note(place, bytes)
    return try OwnerGroup.area(of: place.tag, in: bytes).map { AreaID(uuid: $0) }
  }

  /// The current signed-out area. Constant cost.
  package func unowned() throws -> AreaID? {
    try read { transaction in
      guard let bytes = try transaction.value(of: Self.unownedKey, in: values) else { return nil }
      return AreaID(uuid: try UUIDCodec.decode(bytes.span.bytes))
    }
  }

  package func row(_ area: AreaID) throws -> AreaRow? {
    try read { try $0.value(of: area.uuid, in: areas) }
  }

  /// What is noted of one area, read together.
  func note(of area: AreaID) throws -> (row: AreaRow?, intent: Intent?) {
    try read { transaction in
      (
        try transaction.value(of: area.uuid, in: areas),
        try transaction.value(of: area.uuid, in: intents)
      )
    }
  }

  package func intent(_ area: AreaID) throws -> Intent? {
    try read { try $0.value(of: area.uuid, in: intents) }
  }

  func hasIntents() throws -> Bool {
    try read { try $0.count(of: intents) } > 0
  }

  /// The area of an account, and whether something was begun anywhere. Constant cost.
  func place(of owner: Data) throws -> (area: AreaID?, hasIntents: Bool) {
    let place = OwnerGroup.Place(owner)
    recentGroups.ask(for: place)
    return try read { transaction in
      (
        try self.area(at: place, transaction),
        try transaction.count(of: intents) > 0
      )
    }
  }

  /// The areas of which the registry says that they have an owner.
  /// - Cost: looks at each row's first byte.
  func ownedAreas() throws -> Set<AreaID> {
    try read { transaction in
      var owned: Set<AreaID> = []
      owned.reserveCapacity(try transaction.count(of: areas))
      try transaction.scan(areas) { key, value in
        if try AreaRowCodec.state(value) == .owned {
          owned.insert(AreaID(uuid: try UUIDCodec.decode(key)))
        }
        return .next
      }
      return owned
    }
  }

  func undecided() throws -> Data? {
    try read { try $0.value(of: Self.undecidedKey, in: values).map { Data($0) } }
  }

  func kept() throws -> Data? {
    try read { try $0.value(of: Self.keptKey, in: values).map { Data($0) } }
  }

  private func read<R>(_ body: (borrowing ReadTransaction) throws -> R) throws -> R {
    do {
      return try store.use { try $0.read(body) }
    } catch let error as LMDBError {
      guard error.code == .badForm else {
        throw StoreError(.storage, "the registry could not be read", cause: error)
      }
      throw StoreError.damaged("registry", cause: error)
    }
  }

  /// Whether it is of a format before this one: its owners are not where lookups find them.
  func needsAccounts() throws -> Bool {
    guard let format = try read({ try Self.storedFormat($0, in: values) }) else { return false }
    return (Self.formatMin..<Self.format).contains(format)
  }

  // MARK: Writing, under the store's lock

  /// Brings a registry of a format before to this one: its rows say all that is needed.
  func indexAccounts() throws {
    let owned = try snapshot().areas.filter { $0.value.state == .owned }
    guard let keeping = try recordKeeping() else { throw StoreError.damaged("registry") }
    try write { writing in
      writing.forgetAccounts()
      for (area, row) in owned { writing.set(area, row) }
      writing.setFormat(keeping)
    }
  }

  package func write(_ body: (inout Writing) throws -> Void) throws {
    do {
      try store.use {
        try $0.writeBlocking { transaction in
          // One transaction at a time owns `Writing`; its changes are applied in their order.
          var writing = Writing()
          try body(&writing)
          for change in writing.changes { try apply(change, &transaction) }
        }
      }
    } catch let error as LMDBError {
      throw StoreError(.storage, "the registry could not be written", cause: error)
    }
  }

  /// Changes of the registry that are committed together.
  package struct Writing {
    fileprivate enum Change {
      case format(RecordKeepingMark)
      case noAccounts
      case row(AreaID, AreaRow?)
      case intent(AreaID, Intent?)
      case undecided(Data?)
      case kept(Data)
    }

    fileprivate var changes: [Change] = []

    mutating func setFormat(_ keeping: RecordKeepingMark) { changes.append(.format(keeping)) }
    /// Lookups find nobody, until rows are set again.
    mutating func forgetAccounts() { changes.append(.noAccounts) }
    package mutating func set(_ area: AreaID, _ row: AreaRow?) { changes.append(.row(area, row)) }
    package mutating func setIntent(_ area: AreaID, _ intent: Intent?) {
      changes.append(.intent(area, intent))
    }
    mutating func setUndecided(_ account: Data?) { changes.append(.undecided(account)) }
    mutating func setKept(_ decision: Data) { changes.append(.kept(decision)) }
  }

  private func apply(_ change: Writing.Change, _ transaction: inout WriteTransaction) throws {
    switch change {
    case .format(let keeping):
      var writer = ByteWriter()
      writer.write(Self.format)
      try transaction.put(writer.bytes, for: Self.formatKey, in: values)
      try transaction.put([keeping.rawValue], for: Self.keepingKey, in: values)
    case .noAccounts: try transaction.deleteAll(in: accounts)
    case .row(let area, let row): try apply(row, of: area, &transaction)
    case .intent(let area, let intent):
      if let intent {
        try transaction.put(intent, for: area.uuid, in: intents)
      } else {
        try transaction.delete(area.uuid, in: intents)
      }
    case .kept(let decision):
      try transaction.put(Array(decision), for: Self.keptKey, in: values)
    case .undecided(let account):
      if let account {
        try transaction.put(Array(account), for: Self.undecidedKey, in: values)
      } else {
        try transaction.delete(Self.undecidedKey, in: values)
      }
    }
  }

  /// A row, and what finds it: by its owner, or as the current signed-out area.
  private func apply(
    _ row: AreaRow?, of area: AreaID, _ transaction: inout WriteTransaction
  ) throws {
    let old = try transaction.value(of: area.uuid, in: areas)
    if let owner = old?.owner, try self.area(at: OwnerGroup.Place(owner), transaction) == area,
      row?.state != .owned || row?.owner != owner
    {
      try set(nil, of: owner, &transaction)
    }
    let bytes = withUnsafeBytes(of: area.uuid.uuid) { Array($0) }
    if try transaction.value(of: Self.unownedKey, in: values) == bytes {
      try transaction.delete(Self.unownedKey, in: values)
      // What nobody had decided was about this area; the next one begins without.
      if row?.state != .unowned { try transaction.delete(Self.undecidedKey, in: values) }
    }
    guard let row else {
      try transaction.delete(area.uuid, in: areas)
      return
    }
    try transaction.put(row, for: area.uuid, in: areas)
    if row.state == .owned, let owner = row.owner {
      try set(area, of: owner, &transaction)
    }
    if row.state == .unowned { try transaction.put(bytes, for: Self.unownedKey, in: values) }
  }

  private func set(
    _ area: AreaID?, of owner: Data, _ transaction: inout WriteTransaction
  ) throws {
    let place = OwnerGroup.Place(owner)
    var group = OwnerGroup()
    if let bytes = try transaction.bytes(of: place.group, in: accounts) {
      group = try OwnerGroup(bytes)
    }
    if group[place.tag] == area?.uuid { return }
    group[place.tag] = area?.uuid
    if group.entries.isEmpty {
      try transaction.delete(place.group, in: accounts)
    } else {
      try transaction.put(group.encoded(), for: place.group, in: accounts)
    }
  }
}

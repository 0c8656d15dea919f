import Foundation
import HubProtocol
import HubRules
import Synchronization

/// Accounts, records and results in memory, decided by the same rules as the hub's other stores.
///
/// A call is done when it returns, and waits for nothing: its order among others is its caller's.
final class MemoryHubStore: HubStore {
  /// A record's newest version.
  struct Stored: Sendable {
    var version: UInt64
    /// Nil for a tombstone.
    var payload: Data?
    var client: UUID
    var mutation: UUID

    func record(_ id: RecordID) -> WireRecord {
      WireRecord(
        id: id, version: version, deleted: payload == nil, payload: payload, client: client,
        mutation: mutation)
    }
  }

  /// An applied mutation's result, and what is needed to find and to purge it.
  struct Applied: Sendable {
    var result: StoredResult
    var id: RecordID
  }

  /// Everything of one account.
  struct Account: Sendable {
    var state: AccountState
    var records: [RecordID: Stored] = [:]
    /// The records by their newest versions, ascending.
    var order: [(version: UInt64, id: RecordID)] = []
    var results: [UUID: Applied] = [:]

    init(epoch: UUID) { state = AccountState(epoch: epoch) }

    /// The places in ``order`` of the versions in (`after`, `through`].
    func places(after: UInt64, through last: UInt64) -> Range<Int> {
      func first(above version: UInt64) -> Int {
        var (low, high) = (0, order.count)
        while low < high {
          let middle = (low + high) / 2
          if order[middle].version > version { high = middle } else { low = middle + 1 }
        }
        return low
      }
      let start = first(above: after)
      return start..<max(start, first(above: last))
    }

    func record(_ id: RecordID) -> WireRecord? { records[id]?.record(id) }
  }

  struct Client: Sendable {
    var account: AccountID
    var name: String
  }

  /// What a backup keeps.
  struct Content: Sendable {
    var accounts: [AccountID: Account] = [:]
    var clients: [UUID: Client] = [:]
    /// Erasures and what undid them, in their order: a hub notes them beside its data, too.
    var notes: [(account: AccountID, action: AdministrativeAction)] = []
  }

  let hubID: UUID
  private let signals: AccountSignals
  private let content = Mutex(Content())
  private let makeUUID: @Sendable () -> UUID

  init(hubID: UUID, signals: AccountSignals, makeUUID: @escaping @Sendable () -> UUID) {
    self.hubID = hubID
    self.signals = signals
    self.makeUUID = makeUUID
  }

  /// Reads what is there.
  func look<R: Sendable>(_ body: (Content) throws -> R) rethrows -> R {
    try content.withLock { content in try body(content) }
  }

  private func requireUp() throws { if MemoryHubOutage.isNow { throw MemoryHubOutage() } }

  private func change<R: Sendable>(
    _ account: AccountID, _ body: (inout Account) throws -> R
  ) throws -> R {
    try requireUp()
    return try content.withLock { content in
      var row = content.accounts[account] ?? Account(epoch: makeUUID())
      // Without a second reference the dictionaries are changed where they are.
      content.accounts[account] = nil
      defer { content.accounts[account] = row }
      return try body(&row)
    }
  }

  // MARK: Accounts and clients

  func admit(_ account: AccountID) async throws -> AccountStanding {
    try change(account) { AccountStanding(state: $0.state, isEmpty: $0.records.isEmpty) }
  }

  func owner(ofClient client: UUID) async throws -> AccountID? {
    try requireUp()
    return look { $0.clients[client]?.account }
  }

  func register(
    client: UUID, name: String, for account: AccountID
  ) async throws -> ClientRegistrationOutcome {
    try requireUp()
    return content.withLock { content in
      if let known = content.clients[client], known.account != account { return .boundElsewhere }
      let isNew = content.clients[client] == nil
      content.clients[client] = Client(account: account, name: name)
      return isNew ? .created : .updated
    }
  }

  // MARK: Reading

  func page(
    _ query: PageQuery, of account: AccountID, now: Int64
  ) async throws -> PageOutcome {
    let outcome: PageOutcome = try change(account) { row in
      switch row.state.gate(query.claim) {
      case .pass: return Self.page(query, of: row)
      case .refused(let refusal): return .refused(row.state, refusal)
      case .mustFork:
        let refusal = row.state.forkByCursor(to: makeUUID(), now: now)
        return .refused(row.state, refusal)
      }
    }
    if case .refused(_, .epochChanged) = outcome { signals.wake(account) }
    return outcome
  }

  private static func page(_ query: PageQuery, of row: Account) -> PageOutcome {
    let end = min(query.until ?? row.state.highWater, row.state.highWater)
    guard query.after < end else {
      return .page(row.state, records: .values([]), more: false, next: query.after)
    }
    let places = row.places(after: query.after, through: end)
    var records: [WireRecord] = []
    var byteCount = 0
    for place in places {
      let id = row.order[place].id
      guard let record = row.record(id) else { continue }
      let size = id.bytes.count + (record.payload?.count ?? 0)
      guard
        records.count < query.limit, records.isEmpty || byteCount + size <= query.byteCountMax
      else { break }
      byteCount += size
      records.append(record)
    }
    let more = records.count < places.count
    let next = more ? records.last?.version ?? end : end
    guard query.isEncoded else {
      return .page(row.state, records: .values(records), more: more, next: next)
    }
    var encoded = EncodedRecords(byteCountHint: byteCount + records.count * 200)
    for record in records {
      guard let stored = row.records[record.id] else { continue }
      let id = record.id.bytes
      if let payload = stored.payload {
        encoded.append(
          id: id.span.bytes, version: stored.version, payload: payload.span.bytes,
          client: stored.client, mutation: stored.mutation)
      } else {
        encoded.append(
          id: id.span.bytes, version: stored.version, payload: nil, client: stored.client,
          mutation: stored.mutation)
      }
    }
    return .page(row.state, records: .encoded(encoded), more: more, next: next)
  }

  func record(_ id: RecordID, of account: AccountID) async throws -> RecordOutcome {
    try change(account) { row in
      if let refusal = row.state.statusRefusal { return .refused(row.state, refusal) }
      return .found(row.state, row.record(id))
    }
  }

  // MARK: Pushing

  func push(_ plan: PushPlan, for account: AccountID) async throws -> PushOutcome {
    let outcome: PushOutcome = try change(account) { row in
      switch row.state.gate(plan.claim) {
      case .pass: break
      case .refused(let refusal): return .refused(row.state, refusal)
      case .mustFork:
        let refusal = row.state.forkByCursor(to: makeUUID(), now: plan.storedAt)
        return .refused(row.state, refusal)
      }
      var verdicts = PushVerdicts(on: plan.push.mutations, Self.judge(plan, for: &row))
      Self.addCurrent(to: &verdicts, of: plan, row)
      return .judged(row.state, verdicts)
    }
    switch outcome {
    case .judged(_, let verdicts): if verdicts.hasApplied { signals.wake(account) }
    case .refused(_, .epochChanged): signals.wake(account)
    case .refused: break
    }
    return outcome
  }

  private static func judge(_ plan: PushPlan, for row: inout Account) -> [MutationVerdict] {
    var judge = MutationJudge(state: row.state)
    var verdicts = [MutationVerdict](repeating: .busy, count: plan.push.mutations.count)
    for place in plan.judgingOrder {
      let mutation = plan.mutation(place)
      if let imposed = plan.imposed[place] {
        judge.block(mutation)
        verdicts[place] = imposed
        continue
      }
      let digest = plan.digests[place]
      let verdict = judge.judge(mutation, digest: digest, facts: facts(about: mutation, row))
      if case .applied(let version) = verdict {
        apply(mutation, of: plan, digest, version, &row)
      }
      verdicts[place] = verdict
    }
    row.state.highWater = judge.highWater
    return verdicts
  }

  private static func facts(about mutation: PushedMutation, _ row: Account) -> MutationFacts {
    var facts = MutationFacts()
    facts.stored = row.results[mutation.mutation]?.result
    // A repetition is decided by its stored result alone.
    if facts.stored != nil { return facts }
    facts.newest = row.records[mutation.id].map {
      RecordHead(version: $0.version, deleted: $0.payload == nil)
    }
    if case .mutation(let base) = mutation.base, let applied = row.results[base] {
      facts.base = BaseResult(version: applied.result.version, id: applied.id)
    }
    return facts
  }

  private static func apply(
    _ mutation: PushedMutation, of plan: PushPlan, _ digest: ContentDigest, _ version: UInt64,
    _ row: inout Account
  ) {
    let id = mutation.id
    if let old = row.records[id] {
      let place = row.places(after: old.version - 1, through: old.version)
      row.order.removeSubrange(place)
    }
    row.records[id] = Stored(
      version: version,
      payload: plan.push.payload(of: mutation.outline)?.withUnsafeBytes { Data($0) },
      client: plan.push.client, mutation: mutation.mutation)
    row.order.append((version, id))
    row.results[mutation.mutation] = Applied(
      result: StoredResult(version: version, digest: digest), id: id)
  }

  private static func addCurrent(
    to verdicts: inout PushVerdicts, of plan: PushPlan, _ row: Account
  ) {
    var budget = PayloadBudget(byteCountMax: plan.currentByteCountMax)
    for (place, verdict) in verdicts.verdicts.enumerated() where verdict.carriesCurrent {
      guard var current = row.record(plan.mutation(place).id) else { continue }
      if let payload = current.payload {
        if budget.hasRoom {
          budget.take(payload.count)
        } else {
          current.payload = nil
          current.isPayloadOmitted = true
        }
      }
      verdicts.current[place] = current
    }
  }

  // MARK: Administration

  func administer(
    _ action: AdministrativeAction, on account: AccountID
  ) async throws -> AccountState? {
    try administerNow(action, on: account)
  }

  func administerNow(
    _ action: AdministrativeAction, on account: AccountID
  ) throws -> AccountState? {
    guard look({ $0.accounts[account] != nil }) else { return nil }
    let state = try change(account) { row in
      Self.administer(action, on: &row, makeUUID)
      return row.state
    }
    if action == .erase || action == .recreate {
      content.withLock { $0.notes.append((account, action)) }
    }
    signals.wake(account)
    return state
  }

  private static func administer(
    _ action: AdministrativeAction, on row: inout Account, _ makeUUID: () -> UUID
  ) {
    switch action {
    case .disable: if row.state.status == .active { row.state.status = .disabled }
    case .enable: if row.state.status == .disabled { row.state.status = .active }
    case .erase:
      row.records = [:]
      row.order = []
      row.results = [:]
      row.state.erase()
    case .recreate: if row.state.status == .erased { row.state.recreate(makeUUID()) }
    case .beginEpoch(let forkedAt):
      let highWater = row.state.highWater
      row.state.beginEpoch(makeUUID(), forkedAt: min(forkedAt ?? highWater, highWater))
    case .purgeTombstones(let sequence):
      row.state.raiseMinimumCursor(to: sequence ?? row.state.highWater)
      let minimum = row.state.minimumCursor
      for (id, stored) in row.records where stored.payload == nil && stored.version < minimum {
        row.records[id] = nil
      }
      row.order.removeAll { row.records[$0.id] == nil }
    case .purgeResults(let sequence):
      row.state.raiseIdempotencyFloor(to: sequence ?? row.state.highWater)
      let floor = row.state.idempotencyFloor
      row.results = row.results.filter { $0.value.result.version >= floor }
    }
  }

  /// Puts what a backup kept in the place of everything: each account takes a new epoch, since some
  /// client may know more than the copy does. What was erased since is erased again.
  func restore(_ backup: Content) {
    let accounts = content.withLock { content in
      let missing = content.notes.dropFirst(backup.notes.count)
      // Who waits for an account that the copy does not know is told, too.
      let known = content.accounts.keys
      content = backup
      for account in content.accounts.keys.sorted(by: { $0.text < $1.text }) {
        guard var row = content.accounts[account] else { continue }
        row.state.beginEpoch(makeUUID(), forkedAt: row.state.highWater)
        content.accounts[account] = row
      }
      for note in missing {
        var row = content.accounts[note.account] ?? Account(epoch: makeUUID())
        Self.administer(note.action, on: &row, makeUUID)
        content.accounts[note.account] = row
        content.notes.append(note)
      }
      return Set(known).union(content.accounts.keys)
    }
    for account in accounts { signals.wake(account) }
  }

  func isPassing(_ error: any Error) -> Bool { error is MemoryHubOutage }
  func probe() async throws { try requireUp() }
  func close() async throws {}
}

/// The store of a hub in memory cannot be reached, because a test said so.
struct MemoryHubOutage: Error {
  /// Whether the request that the task answers meets it.
  @TaskLocal static var isNow = false
}

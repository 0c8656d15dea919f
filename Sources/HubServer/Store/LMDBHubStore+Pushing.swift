import Foundation
import HubProtocol
import HubRules
import LMDB

extension LMDBHubStore {
  func push(_ plan: PushPlan, for account: AccountID) async throws -> PushOutcome {
    try await write(waking: account, if: \.isChange) { [self] transaction in
      var row = try row(of: account, &transaction)
      switch row.state.gate(plan.claim) {
      case .pass: break
      case .refused(let refusal): return .refused(row.state, refusal)
      case .mustFork:
        let refusal = row.state.forkByCursor(to: UUID(), now: plan.storedAt)
        try transaction.put(row, for: account.bytes, in: tables.accounts)
        return .refused(row.state, refusal)
      }
      var verdicts = PushVerdicts(
        on: plan.push.mutations, try judge(plan, for: &row, &transaction))
      if verdicts.hasApplied {
        try transaction.put(row, for: account.bytes, in: tables.accounts)
      }
      try addCurrent(to: &verdicts, of: plan, row.number, transaction)
      return .judged(row.state, verdicts)
    }
  }

  /// Judges the mutations in their order and stores what is applied; verdicts come in list order.
  private func judge(
    _ plan: PushPlan, for row: inout AccountRow, _ transaction: inout WriteTransaction
  ) throws -> [MutationVerdict] {
    var judge = MutationJudge(state: row.state)
    var verdicts = [MutationVerdict](repeating: .busy, count: plan.push.mutations.count)
    let isBehindAll = try isBehindAll(row, transaction)
    for place in plan.judgingOrder {
      let mutation = plan.mutation(place)
      if let imposed = plan.imposed[place] {
        judge.block(mutation)
        verdicts[place] = imposed
        continue
      }
      let digest = plan.digests[place]
      verdicts[place] = try LentRecordKey.withKey(
        row.number, plan.push.bytes(mutation.outline.id)
      ) { record in
        let facts = try facts(about: mutation, record, transaction)
        let verdict = judge.judge(mutation, digest: digest, facts: facts)
        if case .applied(let version) = verdict {
          try apply(
            mutation.outline, of: plan, record, digest: digest, version: version,
            replacing: facts.newest, isBehindAll: isBehindAll, &transaction)
        }
        return verdict
      }
    }
    row.state.highWater = judge.highWater
    return verdicts
  }

  /// Whether the account's next version lies behind all that are stored, of other accounts too.
  private func isBehindAll(
    _ row: AccountRow, _ transaction: borrowing some Transaction & ~Copyable
  ) throws -> Bool {
    let last = [
      try transaction.firstKey(in: tables.changes, reversed: true),
      try transaction.firstKey(in: tables.order, reversed: true),
    ]
    return last.allSatisfy { last in
      guard let last else { return true }
      return (last.number, last.version) <= (row.number, row.state.highWater)
    }
  }

  private func facts(
    about mutation: PushedMutation, _ record: LentRecordKey,
    _ transaction: borrowing some Transaction & ~Copyable
  ) throws -> MutationFacts {
    var facts = MutationFacts()
    let key = MutationKeyCodec.Key(number: record.number, mutation: mutation.mutation)
    facts.stored = try transaction.value(of: key, in: tables.results)
    // A repetition is decided by its stored result alone.
    if facts.stored != nil { return facts }
    facts.newest = try transaction.value(of: record, in: tables.recordsInPlace)
    if case .mutation(let base) = mutation.base {
      facts.base = try baseResult(base, record.number, transaction)
    }
    return facts
  }

  private func baseResult(
    _ mutation: UUID, _ number: UInt64, _ transaction: borrowing some Transaction & ~Copyable
  ) throws -> BaseResult? {
    let key = MutationKeyCodec.Key(number: number, mutation: mutation)
    guard let result = try transaction.value(of: key, in: tables.results) else { return nil }
    let place = VersionKeyCodec.Key(number: number, version: result.version)
    guard let applied = try transaction.value(of: place, in: tables.order) else {
      throw badForm("a result without its mutation")
    }
    return BaseResult(version: result.version, id: applied.id)
  }

  private func apply(
    _ mutation: PushOutline.Mutation, of plan: PushPlan, _ record: LentRecordKey,
    digest: ContentDigest, version: UInt64, replacing old: RecordHead?, isBehindAll: Bool,
    _ transaction: inout WriteTransaction
  ) throws {
    if let old {
      try transaction.delete(
        VersionKeyCodec.Key(number: record.number, version: old.version), in: tables.changes)
    }
    let place = VersionKeyCodec.Key(number: record.number, version: version)
    let id = plan.push.bytes(mutation.id)
    let payload = plan.push.payload(of: mutation)
    try transaction.put(
      byteCount: StoredChangeCodec.byteCount(id: id, payload: payload), for: place,
      in: tables.changes, isBehindAll: isBehindAll
    ) { room in
      StoredChangeCodec.write(
        id: id, payload: payload, client: plan.push.client, mutation: mutation.mutation, to: &room)
    }
    try transaction.put(
      RecordHead(version: version, deleted: mutation.kind == .delete), for: record,
      in: tables.recordsInPlace)
    try transaction.put(
      StoredResult(version: version, digest: digest),
      for: MutationKeyCodec.Key(number: record.number, mutation: mutation.mutation),
      in: tables.results)
    try transaction.put(
      byteCount: AppliedMutationCodec.byteCount(id: id), for: place, in: tables.order,
      isBehindAll: isBehindAll
    ) { room in
      AppliedMutationCodec.write(
        id: id, mutation: mutation.mutation, storedAt: plan.storedAt, to: &room)
    }
  }

  /// Adds the newest records to the verdicts that name them.
  private func addCurrent(
    to verdicts: inout PushVerdicts, of plan: PushPlan, _ number: UInt64,
    _ transaction: borrowing some Transaction & ~Copyable
  ) throws {
    var budget = PayloadBudget(byteCountMax: plan.currentByteCountMax)
    for (place, verdict) in verdicts.verdicts.enumerated() where verdict.carriesCurrent {
      guard var current = try newest(plan.mutation(place).id, of: number, transaction) else {
        continue
      }
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
}

extension WriteTransaction {
  /// Makes room for a value and has `body` fill it in place.
  /// - Parameter isBehindAll: the key lies behind all others of the table: its pages are filled to their
  ///   end then.
  fileprivate mutating func put<K, V>(
    byteCount: Int, for key: K.Key, in table: Table<K, V>, isBehindAll: Bool,
    _ body: (inout OutputRawSpan) -> Void
  ) throws(LMDBError) {
    if isBehindAll {
      try append(byteCount: byteCount, for: key, in: table, body)
    } else {
      try put(byteCount: byteCount, for: key, in: table, body)
    }
  }
}

extension PushOutcome {
  /// Whether something was stored: a mutation, or the epoch that a cursor above the high water calls
  /// for.
  fileprivate var isChange: Bool {
    switch self {
    case .judged(_, let verdicts): verdicts.hasApplied
    case .refused(_, .epochChanged): true
    case .refused: false
    }
  }
}

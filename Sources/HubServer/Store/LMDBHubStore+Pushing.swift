import Foundation
import HubProtocol
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
      let verdicts = try judge(plan, for: &row, &transaction)
      if verdicts.contains(where: \.isApplied) {
        try transaction.put(row, for: account.bytes, in: tables.accounts)
      }
      return .judged(row.state, try results(of: plan, verdicts, row.number, transaction))
    }
  }

  /// Judges the mutations in their order and stores what is applied; verdicts come in list order.
  private func judge(
    _ plan: PushPlan, for row: inout AccountRow, _ transaction: inout WriteTransaction
  ) throws -> [MutationVerdict] {
    var judge = MutationJudge(state: row.state)
    var verdicts = [MutationVerdict](repeating: .busy, count: plan.mutations.count)
    for place in plan.judgingOrder {
      let mutation = plan.mutations[place]
      if let imposed = plan.imposed[place] {
        judge.block(mutation)
        verdicts[place] = imposed
        continue
      }
      let facts = try facts(about: mutation, row.number, transaction)
      let verdict = judge.judge(mutation, digest: plan.digests[place], facts: facts)
      verdicts[place] = verdict
      if case .applied(let version) = verdict {
        try apply(
          mutation, of: plan, digest: plan.digests[place], version: version,
          replacing: facts.newest, row.number, &transaction)
      }
    }
    row.state.highWater = judge.highWater
    return verdicts
  }

  private func facts(
    about mutation: WireMutation, _ number: UInt64,
    _ transaction: borrowing some Transaction & ~Copyable
  ) throws -> MutationFacts {
    var facts = MutationFacts()
    let key = MutationKeyCodec.Key(number: number, mutation: mutation.mutation)
    facts.stored = try transaction.value(of: key, in: tables.results)
    // A repetition is decided by its stored result alone.
    if facts.stored != nil { return facts }
    facts.newest = try transaction.value(
      of: RecordKeyCodec.Key(number: number, id: mutation.id.bytes), in: tables.records)
    if case .mutation(let base) = mutation.base {
      facts.base = try baseResult(base, number, transaction)
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
    _ mutation: WireMutation, of plan: PushPlan, digest: ContentDigest, version: UInt64,
    replacing old: RecordHead?, _ number: UInt64, _ transaction: inout WriteTransaction
  ) throws {
    if let old {
      try transaction.delete(
        VersionKeyCodec.Key(number: number, version: old.version), in: tables.changes)
    }
    let place = VersionKeyCodec.Key(number: number, version: version)
    let change = StoredChange(
      id: mutation.id, payload: mutation.payload, client: plan.client,
      mutation: mutation.mutation)
    try transaction.put(change, for: place, in: tables.changes)
    try transaction.put(
      RecordHead(version: version, deleted: mutation.kind == .delete),
      for: RecordKeyCodec.Key(number: number, id: mutation.id.bytes), in: tables.records)
    try transaction.put(
      StoredResult(version: version, digest: digest),
      for: MutationKeyCodec.Key(number: number, mutation: mutation.mutation), in: tables.results)
    let applied = AppliedMutation(
      mutation: mutation.mutation, storedAt: plan.storedAt, id: mutation.id)
    try transaction.put(applied, for: place, in: tables.order)
  }

  private func results(
    of plan: PushPlan, _ verdicts: [MutationVerdict], _ number: UInt64,
    _ transaction: borrowing some Transaction & ~Copyable
  ) throws -> [MutationResult] {
    var budget = PayloadBudget(byteCountMax: plan.currentByteCountMax)
    var results: [MutationResult] = []
    results.reserveCapacity(verdicts.count)
    for (mutation, verdict) in zip(plan.mutations, verdicts) {
      var result = verdict.result(for: mutation.mutation)
      if verdict.carriesCurrent, var current = try newest(mutation.id, of: number, transaction) {
        if let payload = current.payload {
          if budget.hasRoom {
            budget.take(payload.count)
          } else {
            current.payload = nil
            current.isPayloadOmitted = true
          }
        }
        result.current = current
      }
      results.append(result)
    }
    return results
  }
}

extension PushOutcome {
  /// Whether something was stored: a mutation, or the epoch that a cursor above the high water calls
  /// for.
  fileprivate var isChange: Bool {
    switch self {
    case .judged(_, let results): results.contains { $0.status == .applied }
    case .refused(_, .epochChanged): true
    case .refused: false
    }
  }
}

extension MutationVerdict {
  fileprivate var isApplied: Bool {
    if case .applied = self { true } else { false }
  }

  /// Whether the answer names the newest record.
  fileprivate var carriesCurrent: Bool {
    switch self {
    case .conflict, .rejected: true
    case .applied, .duplicate, .blocked, .busy: false
    }
  }

  /// The verdict as the wire has it, without `current`.
  fileprivate func result(for mutation: UUID) -> MutationResult {
    switch self {
    case .applied(let version):
      MutationResult(mutation: mutation, status: .applied, version: version)
    case .duplicate(let version):
      MutationResult(mutation: mutation, status: .duplicate, version: version)
    case .conflict(let detail):
      MutationResult(mutation: mutation, status: .conflict, detail: detail)
    case .rejected(let code, let detail):
      MutationResult(mutation: mutation, status: .rejected, code: code.rawValue, detail: detail)
    case .blocked(let blocker):
      MutationResult(
        mutation: mutation, status: .deferred, code: HubCode.blockedBy.rawValue,
        detail: blocker.uuidString.lowercased())
    case .busy:
      MutationResult(mutation: mutation, status: .deferred, code: HubCode.busy.rawValue)
    }
  }
}

import Foundation
import LMDB

// A registry that is empty or missing while areas exist. (Contract section 3.)
extension ProfileRegistry {
  /// Makes the index anew from what the areas say of themselves.
  ///
  /// Whether an area without an owner had been set aside, and who decided what, is not known any
  /// more: several are all set aside, and a single one waits for a decision if anybody ever signed
  /// in here. No two guests' data are mixed so.
  /// An area that cannot be read gets no row: it is listed with its problem, and nobody is given a
  /// second area while it may be theirs.
  /// - Throws: `registryDisagrees` when two areas say the same owner; `newerFormat`;
  ///   `recordKeepingDiffers`.
  func rebuild() throws {
    try removeLeftovers()
    var found: [AreaID: AreaState] = [:]
    var rows: [AreaID: AreaRow] = [:]
    var hasUnreadable = false
    for id in try areasOnDisk() {
      let said: Said
      do {
        said = try Said(try open(id))
      } catch let error as StoreError where error.code == .newerFormat {
        throw error
      } catch {
        hasUnreadable = true
        continue
      }
      found[id] = said.state
      guard said.state != .erased else { continue }
      if let mark = said.recordKeeping { try requireRecordKeeping(mark) }
      rows[id] = AreaRow(
        state: Self.rowState(owner: said.owner, said.state), owner: said.owner,
        createdAt: said.createdAt ?? policy.now())
    }
    try refuseTwins(rows)
    let intents = Self.intents(explaining: found, rows)
    let unowned = rows.filter { $0.value.state == .unowned }.keys
    if unowned.count > 1 {
      for id in unowned { rows[id]?.state = .setAside }
    }
    let isUndecided = try isUndecided(
      unowned.count == 1 ? unowned.first : nil,
      mayHaveSignedIn: hasUnreadable || rows.count > 1 || found.values.contains(.erased))
    try index.write { [rows] writing in
      for (id, row) in rows { writing.set(id, row) }
      for (id, intent) in intents { writing.setIntent(id, intent) }
      if isUndecided { writing.setUndecided(Data("rebuilt".utf8)) }
      writing.setFormat(RecordKeepingMark(policy))
    }
    try settleIntents()
  }

  /// What an area says of itself.
  private struct Said {
    let createdAt: Date?
    let owner: Data?
    let state: AreaState
    let recordKeeping: RecordKeepingMark?

    init(_ area: Area) throws {
      (createdAt, owner, state, recordKeeping) = try area.readState { transaction in
        let mark = try area.tables.number(.recordKeeping, transaction)
        return (
          try area.tables.identity(transaction)?.createdAt, try area.tables.owner(transaction),
          try area.tables.state(transaction),
          UInt8(exactly: mark).flatMap(RecordKeepingMark.init(rawValue:))
        )
      }
    }
  }

  /// Half made and half removed areas, which no intent names any more.
  private func removeLeftovers() throws {
    for entry in try Self.names(in: directory.path)
    where AreaID(String(entry.name.prefix(32))) != nil {
      if [".making", ".erased"].contains(String(entry.name.dropFirst(32))) {
        try Files.remove(entry.path)
      }
    }
  }

  private static func rowState(owner: Data?, _ state: AreaState) -> AreaRow.State {
    if owner != nil { return .owned }
    if case .moved = state { return .moved }
    return .unowned
  }

  /// The intents that must have been there: erased areas go, open adoptions are finished if their
  /// content was taken over.
  private static func intents(
    explaining found: [AreaID: AreaState], _ rows: [AreaID: AreaRow]
  ) -> [AreaID: Intent] {
    found.reduce(into: [:]) { intents, entry in
      switch entry.value {
      case .active, .moved: break
      case .erased: intents[entry.key] = Intent(kind: .erase)
      case .frozen(let adoption):
        guard let target = rows.first(where: { $0.value.owner == adoption.account }) else { return }
        intents[entry.key] = Intent(
          kind: .adopt, account: adoption.account, adoption: adoption.id, target: target.key)
      }
    }
  }

  private func isUndecided(_ unowned: AreaID?, mayHaveSignedIn: Bool) throws -> Bool {
    guard let unowned, mayHaveSignedIn else { return false }
    return try !open(unowned).unownedSummary().isEmpty
  }

  private func refuseTwins(_ rows: [AreaID: AreaRow]) throws {
    var seen: Set<Data> = []
    for row in rows.values {
      guard let owner = row.owner else { continue }
      guard seen.insert(owner).inserted else {
        throw StoreError.disagrees(
          "two areas say the same owner and there is no registry to tell which counts")
      }
    }
  }
}

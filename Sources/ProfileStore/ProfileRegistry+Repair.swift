import Foundation
import LMDB

// A registry that disagrees with its areas and no intent explains it. (Contract section 3.)
extension ProfileRegistry {
  /// Makes the registry say what the areas say: for a person who has looked at ``profiles()``.
  ///
  /// It changes the registry only: no area, and never an owner. An area that the registry did not know
  /// and that has no owner is set aside. A row without its area goes. Of two areas with one owner the
  /// registry keeps the one that it knows, and the other stays listed with its problem.
  /// - Returns: the areas of which the registry says something else now, sorted; empty when nothing
  ///   disagreed.
  /// - Throws: `storage`. An area that cannot be read is left as it is.
  @discardableResult
  public func repairRegistry() async throws -> [AreaID] {
    try await locked { [self] in
      let snapshot = try index.snapshot()
      let found = try areasOnDisk()
      var said: [AreaID: AreaRow] = [:]
      for id in found where snapshot.intents[id] == nil {
        if let row = repairedRow(of: id, known: snapshot.areas[id]) { said[id] = row }
      }
      let missing = snapshot.areas.keys.filter {
        snapshot.intents[$0] == nil && !found.contains($0)
      }
      let wrong = said.filter { id, row in
        let old = snapshot.areas[id]
        guard old?.state != row.state || old?.owner != row.owner else { return false }
        let twins = said.filter { $0.value.owner == row.owner && $0.key != id }
        return row.owner == nil || twins.isEmpty
      }
      guard !wrong.isEmpty || !missing.isEmpty else { return [] }
      try index.write { writing in
        for id in missing { writing.set(id, nil) }
        for (id, row) in wrong { writing.set(id, row) }
      }
      return (missing + wrong.keys).sorted { $0.description < $1.description }
    }
  }

  /// What the registry should say of an area; nil when the area cannot tell.
  private func repairedRow(of id: AreaID, known: AreaRow?) -> AreaRow? {
    let info: ProfileInfo
    do {
      info = try ProfileInfo(reading: open(id))
    } catch {
      // It stays listed with its problem.
      return nil
    }
    let state: AreaRow.State
    switch info.state {
    case .owned: state = .owned
    case .moved: state = .moved
    case .unowned, .frozen, .setAside: state = known?.state == .unowned ? .unowned : .setAside
    case .erased, .missing, .unreadable: return nil
    }
    return AreaRow(
      state: state, owner: info.owner?.bytes,
      createdAt: known?.createdAt ?? info.createdAt ?? policy.now())
  }
}

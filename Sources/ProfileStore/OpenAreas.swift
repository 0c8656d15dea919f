import Dispatch
import Foundation
import Synchronization

/// The areas of accounts that a registry keeps open by last use, beside those that profiles hold.
///
/// One in use is never closed: its profile holds it, too. Idle ones are closed several at once, in the
/// background, when there are a quarter more than the configured count: closing takes half as long as
/// opening, and whoever opens one does not wait for it.
final class OpenAreas: Sendable {
  private let areas: Mutex<RecentlyUsed<Data, Area>>
  private let countMax: Int
  private let closing = DispatchQueue(label: "holdfast.closing", qos: .utility)

  init(countMax: Int) {
    self.countMax = max(0, countMax)
    areas = Mutex(RecentlyUsed(countMax: self.countMax + self.countMax / 4))
  }

  /// The open area of an account, which counts as used now.
  func use(_ owner: Data) -> Area? { areas.withLock { $0.use(owner) } }

  func keep(_ area: Area, of owner: Data) {
    let removed = areas.withLock { areas -> [Area] in
      var removed: [Area] = []
      if let one = areas.keep(area, for: owner), one !== area { removed.append(one) }
      if areas.count == areas.countMax {
        while areas.count > countMax, let oldest = areas.removeOldest() { removed.append(oldest) }
      }
      return removed
    }
    guard !removed.isEmpty else { return }
    closing.async { withExtendedLifetime(removed) {} }
  }

  /// Lets go of one that is not what it was.
  func drop(_ owner: Data) { _ = areas.withLock { $0.remove(owner) } }

  func dropAll() {
    let dropped = areas.withLock { areas in
      defer { areas = RecentlyUsed(countMax: areas.countMax) }
      return areas.entries.map(\.value)
    }
    closing.sync { withExtendedLifetime(dropped) {} }
  }

  /// How many are kept.
  var count: Int { areas.withLock(\.count) }

  /// Lets go of those that are among the given ones.
  func drop(_ gone: Set<AreaID>) {
    let dropped = areas.withLock { areas in
      areas.entries.filter { gone.contains($0.value.id) }.compactMap { areas.remove($0.key) }
    }
    withExtendedLifetime(dropped) {}
  }
}

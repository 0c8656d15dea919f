package import ProfileStore

/// What a batch hands over: the changes of some pages, but for those that are outdated or skipped.
package struct BatchContents: Sendable {
  /// Where a change lies, and what waits of it.
  struct Slot {
    var page: UInt32
    var index: UInt32
    var edit: UInt8
  }

  let pages: [ChangePage]
  /// A batch of pages that hold only part of it has one for each change; nil: all changes of the only
  /// page, none with an edit.
  let slots: [Slot]?
  package let count: Int
  /// Changes that are older than known.
  let outdatedCount: Int

  /// - Parameters:
  ///   - pages: in order of their versions.
  ///   - edits: for each change of the pages; nil: none waits.
  /// - Cost: one step for each change where there are edits, several pages or something is withheld;
  ///   else none.
  package init(_ pages: [ChangePage], edits: [ChangePage.Flags]? = nil) {
    self.pages = pages
    let total = pages.reduce(0) { $0 + $1.count }
    let hasWithheld = pages.contains(where: \.hasWithheld)
    if pages.count == 1, !hasWithheld, edits == nil {
      slots = nil
      count = total
      outdatedCount = 0
      return
    }
    let withheld = ChangePage.Flags.withheld.rawValue
    let isOutdated = ChangePage.Flags.isOutdated.rawValue
    var slots: [Slot] = []
    slots.reserveCapacity(total)
    var outdatedCount = 0
    var number = 0
    for (place, page) in pages.enumerated() {
      for index in 0..<page.count {
        let flags = page.hasWithheld ? page[index].flags.rawValue : 0
        if flags & isOutdated != 0 { outdatedCount += 1 }
        if flags & withheld == 0 {
          let edit = edits.map { $0[number].rawValue } ?? 0
          slots.append(Slot(page: UInt32(place), index: UInt32(index), edit: edit))
        }
        number += 1
      }
    }
    self.slots = slots
    self.outdatedCount = outdatedCount
    count = slots.count
  }

  /// How many changes are handed over and how many outdated, without preparing to hand them over.
  static func counts(of pages: [ChangePage]) -> (delivered: Int, outdated: Int) {
    var counts = (delivered: 0, outdated: 0)
    for page in pages {
      counts.delivered += page.count
      guard page.hasWithheld else { continue }
      for index in 0..<page.count {
        let flags = page[index].flags
        if flags.contains(.isOutdated) { counts.outdated += 1 }
        if !flags.isDisjoint(with: .withheld) { counts.delivered -= 1 }
      }
    }
    return counts
  }

  /// The changes in place.
  package var changes: LentChanges {
    @_lifetime(borrow self)
    get { LentChanges(self) }
  }
}

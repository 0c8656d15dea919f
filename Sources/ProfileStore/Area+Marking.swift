package import Foundation
package import HubProtocol
import LMDB

extension Area {
  /// Marks the changes of a page that are older than the metadata knows. (Contract section 6.)
  ///
  /// It is done before the page is handed over, beside the fetching of the next one. Nothing else
  /// writes the metadata of an area while a pass holds its turn, so what is marked stays right.
  /// - Parameter page: nobody else has it yet.
  /// - Cost: one look-up for each change; none while the metadata is empty.
  package func mark(_ page: ChangePage, epoch: UUID, lineage: [LineageEntry]) throws {
    try read { transaction in
      if try knowsNothing(transaction) { return }
      let comparison = try comparison(in: epoch, lineage: lineage, transaction)
      for index in 0..<page.count {
        let head = page[index]
        // A deletion that is only inferred is of the version that is known.
        if head.flags.contains(.isInferred) { continue }
        guard
          let known = try known(
            newerThan: head.version, of: page.id(head), comparison, transaction)
        else { continue }
        page.mark(index, as: known.isDeleted ? [.isOutdated, .isSkipped] : .isOutdated)
      }
    }
  }

  /// Which of a batch's records have an edit of this device that waits, read at this moment: flags for
  /// each change of the pages, in order; nil when nothing waits at all.
  /// - Cost: nothing but one read while the outbox is empty; else one look-up for each change.
  package func localEdits(in pages: [ChangePage]) throws -> [ChangePage.Flags]? {
    try read { transaction in
      guard try !pendingSummary(transaction).isEmpty else { return nil }
      var edits: [ChangePage.Flags] = []
      edits.reserveCapacity(pages.reduce(0) { $0 + $1.count })
      for page in pages {
        for index in 0..<page.count {
          let record = RecordID(copying: page.id(page[index]))
          let edit = try localEdit(of: record, transaction)
          var flags: ChangePage.Flags = []
          if edit.isPending { flags.insert(.isPending) }
          if edit.isParked { flags.insert(.isParked) }
          edits.append(flags)
        }
      }
      return edits
    }
  }
}

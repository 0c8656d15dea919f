import Foundation
import HubProtocol
import ProfileStore

extension PassRunner {
  /// Pulls pages from the cursor; each is handed over and committed by itself.
  /// - Returns: whether it came to the end of what the hub has.
  func pull(_ apply: Apply) async throws -> Bool {
    guard let hub, var after = try area.facts().cursor?.sequence else { throw SyncError.stateLost }
    var extraPages = 0
    while true {
      let page = try await page(after: after, until: nil)
      if !page.records.isEmpty || page.next > after {
        let handed = try await hand(
          page.records.map(IncomingChange.init), isReplay: false, at: .ordinary, apply)
        try await commit(handed.wanted, of: handed, progress: .cursor(page.next))
      }
      after = page.next
      show(.receiving, after, of: max(page.highWater, after))
      guard page.more else { return true }
      if after >= hub.highWater {
        // Others write faster than this device reads: the next pass goes on.
        extraPages += 1
        if extraPages >= SyncLimits.extraPageCountMax { return false }
      }
    }
  }

  /// Asks for one page and checks it, before anything of it is used.
  func page(after: UInt64, until: UInt64?) async throws -> ChangesPage {
    guard let hub else { throw SyncError.stateLost }
    let query = ChangesQuery(
      after: after, epoch: hub.epoch,
      limit: min(max(hub.limits.pullRecords, 1), SyncLimits.batchCountMax), until: until)
    let response = try await ask(.changes(query), .pull)
    let page = try AnswerBody.read(ChangesPage.self, from: response)
    try requireOurs(response, hub: page.hub, account: page.account, epoch: page.epoch)
    if let fault = PageCheck.fault(in: page, asked: query) { throw SyncError.badAnswer(fault) }
    report.pages += 1
    return page
  }
}

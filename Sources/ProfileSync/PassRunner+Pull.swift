import Foundation
import HubProtocol
import ProfileStore

extension PassRunner {
  private typealias PageCommit = RunningCommit<CommitLine.Group, Void>

  /// Pulls pages from the cursor.
  /// - Returns: whether it came to the end of what the hub has.
  func pull(_ apply: Apply) async throws -> Bool {
    guard let after = try area.facts().cursor?.sequence else { throw SyncError.stateLost }
    return hasClosure
      ? try await pullForClosure(after, apply) : try await pullForArea(after)
  }

  /// Each page is handed over and committed by itself.
  private func pullForClosure(_ start: UInt64, _ apply: Apply) async throws -> Bool {
    var place = PullPlace(start)
    while place.hasMore {
      let page = try await nextPage(&place)
      try mark(page.parts)
      for (index, part) in page.parts.enumerated() {
        let position = try await hand([part], isReplay: false, at: .ordinary, apply)
        let isLast = index == page.parts.count - 1
        try await commit(
          [part], position: position,
          progress: .cursor(isLast ? page.next : part[part.count - 1].version))
      }
      if page.parts.isEmpty, place.hasMoved {
        try await commit([], position: nil, progress: .cursor(page.next))
      }
      show(.receiving, page.next, of: max(page.highWater, page.next))
    }
    return place.isAtEnd
  }

  /// Fetching goes on while a commit runs; the pages that arrive meanwhile share the next one.
  private func pullForArea(_ start: UInt64) async throws -> Bool {
    var place = PullPlace(start)
    var line = CommitLine()
    var running: PageCommit?
    do {
      while place.hasMore {
        let page = try await nextPage(&place)
        if !page.parts.isEmpty || place.hasMoved { line.add(page) }
        show(.receiving, page.next, of: max(page.highWater, page.next))
        if line.isFull || running?.hasEnded ?? true { try await turn(&line, &running) }
      }
      while running != nil || !line.isEmpty { try await turn(&line, &running) }
    } catch let stopped {
      do {
        try await settle(&line, &running, after: stopped)
      } catch {
        // A security event is never hidden behind another error.
        if (stopped as? Refused)?.action == .stopForSecurity { throw stopped }
        throw error
      }
      throw stopped
    }
    return place.isAtEnd
  }

  /// Waits for the running commit and begins the next one.
  private func turn(_ line: inout CommitLine, _ running: inout PageCommit?) async throws {
    if let commit = running {
      running = nil
      try await commit.wait()
      count(commit.group.pages)
    }
    guard let group = line.take() else { return }
    guard let hub else { throw SyncError.stateLost }
    try Task.checkCancellation()
    try requireSession()
    running = PageCommit(group) {
      [area, policy, epoch = hub.epoch, lineage = hub.lineage, sessionCheck] in
      for page in group.pages { try area.mark(page, epoch: epoch, lineage: lineage) }
      try await area.commit(
        pages: group.pages, epoch: epoch, lineage: lineage, progress: .cursor(group.cursor),
        position: nil, policy: policy, requiring: sessionCheck)
    }
  }

  /// The pull stops: no commit is left running. What came whole before trouble on the way to the hub is
  /// kept, so that a pass gets on where every tenth request fails.
  private func settle(
    _ line: inout CommitLine, _ running: inout PageCommit?, after stopped: any Error
  ) async throws {
    if let commit = running {
      running = nil
      try await commit.wait()
      count(commit.group.pages)
    }
    guard Self.isTrouble(stopped), !Task.isCancelled else { return }
    while running != nil || !line.isEmpty { try await turn(&line, &running) }
  }

  private static func isTrouble(_ error: any Error) -> Bool {
    switch error {
    case let refused as Refused:
      switch refused.action {
      case .networkTrouble, .backOff: true
      default: false
      }
    case let error as SyncError: error.code == .hubUnreachable || error.code == .badAnswer
    default: false
    }
  }

  /// Asks for the next page and moves on.
  private func nextPage(_ place: inout PullPlace) async throws -> PulledPage {
    guard let hub else { throw SyncError.stateLost }
    let page = try await page(after: place.after, until: nil)
    place.move(past: page, until: hub.highWater)
    return page
  }

  /// Asks for one page and checks it, before anything of it is used.
  func page(after: UInt64, until: UInt64?) async throws -> PulledPage {
    guard let hub else { throw SyncError.stateLost }
    let query = ChangesQuery(
      after: after, epoch: hub.epoch,
      limit: min(max(hub.limits.pullRecords, 1), SyncLimits.batchCountMax), until: until)
    let response = try await ask(.changes(query), .pull)
    let page = try AnswerBody.outline(from: response)
    try requireOurs(response, hub: page.hub, account: page.account, epoch: page.epoch)
    if let fault = PageCheck.fault(in: page, asked: query) { throw SyncError.badAnswer(fault) }
    report.pages += 1
    return PulledPage(page)
  }
}

/// Where a pull is.
private struct PullPlace {
  private(set) var after: UInt64
  private(set) var hasMore = true
  /// The last page moved it.
  private(set) var hasMoved = false
  /// It came to the end of what the hub has.
  private(set) var isAtEnd = false
  private var extraPages = 0

  init(_ after: UInt64) { self.after = after }

  /// - Parameter highWater: the hub's when the pass began.
  mutating func move(past page: PulledPage, until highWater: UInt64) {
    hasMoved = page.next > after
    after = page.next
    guard page.more else {
      hasMore = false
      isAtEnd = true
      return
    }
    if after >= highWater {
      // Others write faster than this device reads: the next pass goes on.
      extraPages += 1
      if extraPages >= SyncLimits.extraPageCountMax { hasMore = false }
    }
  }
}

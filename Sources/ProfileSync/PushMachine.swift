package import HubProtocol
package import ProfileStore

/// Sends the outbox, as a value: it is told what happened and answers what to do next. No clock, no
/// I/O. (Contract section 4; the protocol's last table, rows 400, 413 and 500.)
///
/// Batches go in order. One that the hub does not take is made smaller until the one is found that it
/// does not take: parked if the hub itself refuses it for good, held if the hub fails on it. An empty
/// push shows each time that the hub takes anything at all. Then the held ones whose time has come go,
/// each alone.
///
/// As long as the hub applies all of a batch, the next ones go while that one is being settled: they
/// were looked up, and their first transmission remembered, one commit before. Where a verdict is
/// another one, everything is settled first, and what comes next is looked up again, since some of it
/// may have to wait.
package struct PushMachine: Hashable, Sendable {
  /// What the runner tells.
  package enum Event: Hashable, Sendable {
    /// What may be sent, in order; none: there is no more.
    case read([PushItem])
    /// The verdicts on what was sent, in its order.
    /// `ahead`: what lies behind it, looked up as ``PushMachine/lookahead`` says; all of it is known on
    /// disk as about to be sent.
    case verdicts([MutationStatus], ahead: [PushItem] = [])
    /// An answer that is not for use.
    case refused(AnswerAction)
    /// In how many passes in a row the hub has failed on the batch, this one included.
    case counted(Int)
    /// It is settled, or parked.
    case done
    /// It was not sent, since a person has decided meanwhile about something that waits: what was looked
    /// up may be gone, and may have to wait behind what goes from its old place now.
    case decided
    /// It is held; `hasRoom` false: it is not, since too many are. Then those whose time has come are
    /// tried before it is given up: one that is taken makes room.
    case held(hasRoom: Bool)
  }

  /// What the runner does.
  package enum Action: Hashable, Sendable {
    /// Look up what may be sent behind a place.
    case read(after: UInt64, countMax: Int, byteCountMax: Int)
    /// Look up the held mutations whose time has come.
    case readHeld
    case send([PushItem])
    /// Ask with an empty push whether the hub takes anything at all.
    case sendNothing
    /// Settle what was sent last, by its verdicts, and everything before it.
    case settle
    /// Send what was looked up ahead, and meanwhile settle what was sent last, by itself or with what
    /// follows in one transaction. It is settled before anything else is done than to send on like this.
    case settleAndSend([PushItem])
    /// Count one more pass in which the hub failed on the batch that begins so.
    case countFailure(PushItem)
    case park(PushItem, Parked.Reason)
    case hold(PushItem)
    /// Not the push's to resolve.
    case giveUp(AnswerAction)
    case finished
  }

  /// In so many passes in a row the hub fails on the same first batch before one is looked for.
  static let failingPassCountMax = 3
  /// So many held in a row, with nothing taken between them, are no poison: it is the hub that fails.
  static let holdsInARowMax = 8

  private enum Finding: Hashable, Sendable {
    /// The hub fails on the batch: find the one.
    case bisect
    case park(Parked.Reason)
  }

  private enum Phase: Hashable, Sendable {
    case reading
    case readingHeld
    case sending
    case counting
    case probing(Finding)
    case settling
    case parking
    case holding
    case over
  }

  /// What was ordered last, and stands until the event that belongs to it.
  package private(set) var order: Action
  private var phase = Phase.reading
  private var plan: PushPlan
  /// What is enqueued later goes in the next pass.
  package let through: UInt64
  private var after: UInt64 = 0
  /// What was sent last, or is to be sent now.
  private var batch: [PushItem] = []
  /// Where the batch that was read ends.
  private var batchEnd: UInt64 = 0
  /// Records of which a mutation was deferred: later ones wait with it.
  private var deferred: Set<RecordID> = []
  private var failure: AnswerAction?
  private var isBisecting = false
  private var holdsInARow = 0
  /// Held mutations that are still to be tried; nil: they were not looked up yet.
  private var held: [PushItem]?
  private var isTryingHeld = false
  private var hasReleased = false
  /// There was no room to hold one: nothing behind it is sent.
  private var lacksRoom = false

  /// - Parameters:
  ///   - through: the place of the newest mutation that is to be sent.
  ///   - waiting: records of which nothing is sent, since the hub has put them off and their pause is
  ///     not over.
  package init(limits: HubLimits, through: UInt64, waiting: Set<RecordID> = []) {
    plan = PushPlan(limits: limits)
    deferred = waiting
    self.through = through
    order = .finished
    order = readOn()
  }

  /// While a batch goes, or is settled: what will be looked up next, so that one commit can settle a
  /// batch, look up what goes next, and remember its first transmission.
  package var lookahead: NextBatches? {
    guard !isTryingHeld else { return nil }
    // Nothing goes ahead while the size of a batch is still being found.
    let isSteady = plan.isFull && !isBisecting
    switch phase {
    case .sending where isSteady:
      return next(behind: batchEnd, count: SyncLimits.aheadBatchCountMax)
    case .settling: return next(behind: after, count: isSteady ? SyncLimits.aheadBatchCountMax : 1)
    default: return nil
    }
  }

  private func next(behind order: UInt64, count: Int) -> NextBatches {
    NextBatches(
      after: order, through: through, countMax: plan.countMax, byteCountMax: plan.byteCountMax,
      count: count, allByteCountMax: SyncLimits.aheadByteCountMax)
  }

  /// The next action after an event. An event that does not belong to what was ordered changes
  /// nothing: the order stands.
  package mutating func handle(_ event: Event) -> Action {
    switch (phase, event) {
    case (.reading, .read(let items)): order = take(items)
    case (.readingHeld, .read(let items)):
      held = items
      order = goOn()
    case (.sending, .verdicts(let statuses, let ahead)) where statuses.count == batch.count:
      let isExpectingMore = lookahead != nil
      for (item, status) in zip(batch, statuses) where status == .deferred {
        deferred.insert(item.record)
      }
      accepted()
      if isTryingHeld, statuses == [.deferred] {
        // Neither taken nor failed on: it is tried again after a pause of its own.
        order = go(.holding, .hold(batch[0]))
        break
      }
      if isTryingHeld { hasReleased = true } else { after = batchEnd }
      let isAllApplied = statuses.allSatisfy { $0 == .applied || $0 == .duplicate }
      order =
        (isExpectingMore && isAllApplied ? goAhead(ahead) : nil) ?? go(.settling, .settle)
    case (.sending, .refused(let action)): order = refused(action)
    case (.sending, .decided): order = readAgain()
    case (.counting, .counted(let passCount)):
      order =
        passCount < Self.failingPassCountMax
        ? giveUp(failure ?? .backOff(retryAfter: nil)) : probe(.bisect)
    case (.probing(let finding), .verdicts([], _)): order = probed(finding)
    case (.probing, .refused(let action)): order = giveUp(action)
    case (.settling, .done), (.parking, .done): order = goOn()
    case (.holding, .held(hasRoom: true)):
      holdsInARow += 1
      order = goOn()
    case (.holding, .held(hasRoom: false)):
      lacksRoom = true
      order = held == nil ? readHeld() : giveUp(failure ?? .backOff(retryAfter: nil))
    default: break
    }
    return order
  }

  // MARK: Reading

  private mutating func take(_ items: [PushItem]) -> Action {
    guard let first = items.first, let last = items.last, first.order <= through else {
      return readHeld()
    }
    batch = sendable(items)
    batchEnd = last.order
    if batch.isEmpty {
      after = batchEnd
      return readOn()
    }
    return go(.sending, .send(batch))
  }

  /// The next batch, while the one before it is settled; nil where there is none.
  private mutating func goAhead(_ items: [PushItem]) -> Action? {
    let next = sendable(items)
    guard let last = items.last, !next.isEmpty else { return nil }
    batch = next
    batchEnd = last.order
    return go(.sending, .settleAndSend(next))
  }

  private func sendable(_ items: [PushItem]) -> [PushItem] {
    items.filter { $0.order <= through && !deferred.contains($0.record) }
  }

  private mutating func readHeld() -> Action {
    guard held == nil else { return go(.over, .finished) }
    return go(.readingHeld, .readHeld)
  }

  private mutating func readOn() -> Action {
    go(
      .reading,
      .read(after: after, countMax: plan.countMax, byteCountMax: plan.byteCountMax))
  }

  /// All that waits, from its beginning; the held ones after it, as they are then.
  private mutating func readAgain() -> Action {
    held = nil
    isTryingHeld = false
    hasReleased = false
    after = 0
    return readOn()
  }

  /// The next held one, else what lies behind.
  private mutating func goOn() -> Action {
    guard let first = held?.first else {
      isTryingHeld = false
      if lacksRoom, !hasReleased { return giveUp(failure ?? .backOff(retryAfter: nil)) }
      if hasReleased {
        lacksRoom = false
        // What has waited with them can go now.
        hasReleased = false
        after = 0
      }
      return readOn()
    }
    held?.removeFirst()
    isTryingHeld = true
    batch = [first]
    return go(.sending, .send(batch))
  }

  // MARK: What the hub does not take

  private mutating func accepted() {
    plan.accepted()
    holdsInARow = 0
  }

  private mutating func refused(_ action: AnswerAction) -> Action {
    failure = action
    if case .failed = action {
      if isTryingHeld {
        // It is the hub that fails: the others are left for a later pass, after a pause.
        if holdsInARow >= Self.holdsInARowMax { return giveUp(action) }
        return go(.holding, .hold(batch[0]))
      }
      return isBisecting ? probe(.bisect) : go(.counting, .countFailure(batch[0]))
    }
    switch plan.refused(action, count: batch.count) {
    case .again: return readOn()
    case .giveUp: return giveUp(action)
    case .parkIfEmptyPushIsAccepted(let reason): return probe(.park(reason))
    }
  }

  private mutating func probe(_ finding: Finding) -> Action {
    // Larger batches need no empty push to be made smaller, once one was accepted.
    if finding == .bisect, isBisecting, batch.count > 1 { return probed(.bisect) }
    return go(.probing(finding), .sendNothing)
  }

  private mutating func probed(_ finding: Finding) -> Action {
    switch finding {
    case .park(let reason):
      if !isTryingHeld { after = batch[0].order }
      plan.accepted()
      return go(.parking, .park(batch[0], reason))
    case .bisect:
      isBisecting = true
      if batch.count > 1 {
        plan.halve(batch.count)
        return readOn()
      }
      guard holdsInARow < Self.holdsInARowMax else {
        return giveUp(failure ?? .backOff(retryAfter: nil))
      }
      after = batch[0].order
      plan.accepted()
      return go(.holding, .hold(batch[0]))
    }
  }

  private mutating func giveUp(_ action: AnswerAction) -> Action { go(.over, .giveUp(action)) }

  private mutating func go(_ phase: Phase, _ action: Action) -> Action {
    self.phase = phase
    return action
  }
}

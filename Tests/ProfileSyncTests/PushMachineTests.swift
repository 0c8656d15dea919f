import Foundation
import HubProtocol
import ProfileStore
import ProfileSync
import Testing

/// Where a push stands after a list of events, by name: what was ordered then.
private struct PushStand: Sendable, CustomTestStringConvertible {
  let testDescription: String
  let events: [PushMachine.Event]
  /// What each event that belongs there leads to; every other one changes nothing.
  let next: [PushMachine.Event: PushMachine.Action]

  init(
    _ name: String, _ events: [PushMachine.Event],
    _ next: [PushMachine.Event: PushMachine.Action]
  ) {
    testDescription = name
    self.events = events
    self.next = next
  }

  var machine: PushMachine {
    var machine = PushMachine(limits: HubLimits(pushMutations: 4), through: 9)
    for event in events { _ = machine.handle(event) }
    return machine
  }
}

private typealias Event = PushMachine.Event
private typealias Action = PushMachine.Action

private let items = (1...10).map { number in
  // A fixed UUID each, so that tables can name them.
  PushItem(
    mutation: NSUUID(uuidBytes: [UInt8](repeating: UInt8(number), count: 16)) as UUID,
    order: UInt64(number), record: RecordID("r\(number)"))
}
private let one = [items[0]]
private let four = Array(items[0..<4])
/// What is looked up ahead of those.
private let second = [items[1]]
private let nextFour = Array(items[4..<8])
private let fourApplied: [MutationStatus] = [.applied, .duplicate, .applied, .applied]

private func read(_ after: UInt64, _ countMax: Int = 4) -> Action {
  .read(after: after, countMax: countMax, byteCountMax: PushPlan(limits: HubLimits()).byteCountMax)
}

/// What an answer that only the pass can resolve leads to.
private let others: [AnswerAction] = [
  .stopForSecurity, .epochChanged, .networkTrouble(retryAfter: nil),
  .backOff(retryAfter: .seconds(7)), .refreshToken, .registerClient, .scanFromZero, .freeze,
  .stop(.accountDisabled),
]
private let givenUp: [Event: Action] = Dictionary(
  uniqueKeysWithValues: others.map { (.refused($0), .giveUp($0)) })

private let failed = Event.refused(.failed(retryAfter: nil))
private let tooLarge = Event.refused(.halve(isFromHub: true))
private let proxyTooLarge = Event.refused(.halve(isFromHub: false))
private let bad = Event.refused(.bisect(namesMutation: true))
private let badRequest = Event.refused(.bisect(namesMutation: false))

/// The prefix that leads to a single mutation on which the hub fails, while an empty push is taken.
private let bisectedToOne: [Event] = [
  .read(four), failed, .counted(3), .verdicts([]), .read(Array(items[0..<2])), failed, .read(one),
]

/// The prefix that leads to one that cannot be held.
private let tooMany: [Event] = bisectedToOne + [failed, .verdicts([]), .held(hasRoom: false)]

private let stands: [PushStand] = [
  PushStand(
    "at the beginning", [],
    [
      .read([]): .readHeld, .read(four): .send(four), .read(one): .send(one),
      // What was enqueued after the push began goes in the next pass.
      .read([items[9]]): .readHeld,
      .read(Array(items[8...9])): .send([items[8]]),
    ]),
  PushStand(
    "a batch is out", [.read(four)],
    givenUp.merging([
      .decided: read(0),
      .verdicts([.applied, .duplicate, .rejected, .conflict]): .settle,
      .verdicts([.applied, .deferred, .applied, .deferred]): .settle,
      .verdicts(fourApplied): .settle,
      // What lies behind goes at once where all was applied, and else is looked up again.
      .verdicts(fourApplied, ahead: nextFour): .settleAndSend(nextFour),
      .verdicts([.applied, .duplicate, .rejected, .conflict], ahead: nextFour): .settle,
      .verdicts([.applied, .deferred, .applied, .deferred], ahead: nextFour): .settle,
      // What was enqueued after the push began goes in the next pass.
      .verdicts(fourApplied, ahead: Array(items[8...9])): .settleAndSend([items[8]]),
      .verdicts(fourApplied, ahead: [items[9]]): .settle,
      failed: .countFailure(items[0]),
      tooLarge: read(0, 2), proxyTooLarge: read(0, 2), bad: read(0, 2), badRequest: read(0, 2),
    ]) { $1 }),
  PushStand(
    "a single one is out", [.read(one)],
    givenUp.merging([
      .decided: read(0),
      .verdicts([.applied]): .settle, .verdicts([.deferred]): .settle,
      .verdicts([.applied], ahead: second): .settleAndSend(second),
      .verdicts([.deferred], ahead: second): .settle,
      failed: .countFailure(items[0]),
      tooLarge: .sendNothing, bad: .sendNothing,
      proxyTooLarge: .giveUp(.halve(isFromHub: false)),
      badRequest: .giveUp(.bisect(namesMutation: false)),
    ]) { $1 }),
  PushStand(
    "the hub has failed on a batch", [.read(four), failed],
    [
      .counted(1): .giveUp(.failed(retryAfter: nil)),
      .counted(2): .giveUp(.failed(retryAfter: nil)),
      .counted(3): .sendNothing, .counted(4): .sendNothing,
    ]),
  PushStand(
    "an empty push is out, after a batch failed three times",
    [.read(four), failed, .counted(3)],
    givenUp.merging([
      .verdicts([]): read(0, 2), failed: .giveUp(.failed(retryAfter: nil)),
      tooLarge: .giveUp(.halve(isFromHub: true)),
      proxyTooLarge: .giveUp(.halve(isFromHub: false)),
      bad: .giveUp(.bisect(namesMutation: true)),
      badRequest: .giveUp(.bisect(namesMutation: false)),
    ]) { $1 }),
  PushStand(
    "an empty push is out, after a single one failed three times",
    [.read(one), failed, .counted(3)],
    givenUp.merging([
      .verdicts([]): .hold(items[0]), failed: .giveUp(.failed(retryAfter: nil)),
      tooLarge: .giveUp(.halve(isFromHub: true)),
      proxyTooLarge: .giveUp(.halve(isFromHub: false)),
      bad: .giveUp(.bisect(namesMutation: true)),
      badRequest: .giveUp(.bisect(namesMutation: false)),
    ]) { $1 }),
  PushStand(
    "half a batch is out, after an empty push was taken",
    [.read(four), failed, .counted(3), .verdicts([]), .read(Array(items[0..<2]))],
    givenUp.merging([
      .decided: read(0, 2),
      .verdicts([.applied, .applied]): .settle, .verdicts([.deferred, .applied]): .settle,
      // While one is being looked for, nothing goes ahead.
      .verdicts([.applied, .applied], ahead: nextFour): .settle,
      // No further empty push is needed to make it smaller.
      failed: read(0, 1), tooLarge: read(0, 1), proxyTooLarge: read(0, 1), bad: read(0, 1),
      badRequest: read(0, 1),
    ]) { $1 }),
  PushStand(
    "the one is found, and an empty push is out once more", bisectedToOne + [failed],
    givenUp.merging([
      .verdicts([]): .hold(items[0]), failed: .giveUp(.failed(retryAfter: nil)),
      tooLarge: .giveUp(.halve(isFromHub: true)),
      proxyTooLarge: .giveUp(.halve(isFromHub: false)),
      bad: .giveUp(.bisect(namesMutation: true)),
      badRequest: .giveUp(.bisect(namesMutation: false)),
    ]) { $1 }),
  PushStand(
    "one is being held", bisectedToOne + [failed, .verdicts([])],
    [
      .held(hasRoom: true): read(1, 2),
      // Those whose time has come may make room.
      .held(hasRoom: false): .readHeld,
    ]),
  PushStand(
    "too many are held, and those whose time has come are looked up", tooMany,
    [
      .read([]): .giveUp(.failed(retryAfter: nil)), .read(one): .send(one),
      .read(four): .send(one), .read([items[9]]): .send([items[9]]),
      .read(Array(items[8...9])): .send([items[8]]),
    ]),
  PushStand(
    "too many are held, and the only one whose time has come was taken",
    tooMany + [.read(one), .verdicts([.applied])], [.done: read(0)]),
  PushStand(
    "too many are held, and the only one whose time has come is held again",
    tooMany + [.read(one), failed],
    [
      .held(hasRoom: true): .giveUp(.failed(retryAfter: nil)),
      .held(hasRoom: false): .giveUp(.failed(retryAfter: nil)),
    ]),
  PushStand(
    "there is room again, and then none",
    tooMany
      + [.read(one), .verdicts([.applied]), .done, .read(one), failed, .verdicts([])],
    [
      .held(hasRoom: true): read(1), .held(hasRoom: false): .giveUp(.failed(retryAfter: nil)),
    ]),
  PushStand(
    "an empty push is out, after the hub refused a single one",
    [.read(one), bad],
    givenUp.merging([
      .verdicts([]): .park(items[0], .rejected), failed: .giveUp(.failed(retryAfter: nil)),
      tooLarge: .giveUp(.halve(isFromHub: true)),
      proxyTooLarge: .giveUp(.halve(isFromHub: false)),
      bad: .giveUp(.bisect(namesMutation: true)),
      badRequest: .giveUp(.bisect(namesMutation: false)),
    ]) { $1 }),
  PushStand(
    "one that is too large is being parked", [.read(one), tooLarge, .verdicts([])],
    [.done: read(1)]),
  PushStand(
    "verdicts are being settled",
    [.read(four), .verdicts([.applied, .deferred, .applied, .applied])], [.done: read(4)]),
  PushStand(
    "the next batch is out, while the last one is settled",
    [.read(four), .verdicts(fourApplied, ahead: nextFour)],
    givenUp.merging([
      .decided: read(0),
      .verdicts(fourApplied): .settle,
      .verdicts([.applied, .duplicate, .rejected, .conflict]): .settle,
      .verdicts([.applied, .deferred, .applied, .deferred]): .settle,
      .verdicts([.applied, .duplicate, .rejected, .conflict], ahead: nextFour): .settle,
      .verdicts([.applied, .deferred, .applied, .deferred], ahead: nextFour): .settle,
      .verdicts(fourApplied, ahead: Array(items[8...9])): .settleAndSend([items[8]]),
      .verdicts(fourApplied, ahead: nextFour): .settleAndSend(nextFour),
      .verdicts(fourApplied, ahead: [items[9]]): .settle,
      // What becomes of it is as if it had gone after the settling: that has ended by now.
      failed: .countFailure(items[4]),
      tooLarge: read(4, 2), proxyTooLarge: read(4, 2), bad: read(4, 2), badRequest: read(4, 2),
    ]) { $1 }),
  PushStand(
    "a batch that went ahead is being settled by itself",
    [
      .read(four), .verdicts(fourApplied, ahead: nextFour),
      .verdicts([.applied, .deferred, .applied, .deferred]),
    ],
    [.done: read(8)]),
  PushStand(
    "half of a batch that went ahead is out",
    [.read(four), .verdicts(fourApplied, ahead: nextFour), tooLarge, .read(Array(items[4..<6]))],
    givenUp.merging([
      .decided: read(0, 2),
      .verdicts([.applied, .applied]): .settle, .verdicts([.deferred, .applied]): .settle,
      // Nothing goes ahead before batches are as large as they may be.
      .verdicts([.applied, .applied], ahead: nextFour): .settle,
      failed: .countFailure(items[4]),
      tooLarge: read(4, 1), proxyTooLarge: read(4, 1), bad: read(4, 1), badRequest: read(4, 1),
    ]) { $1 }),
  PushStand(
    "nothing is left but what is held", [.read([])],
    [
      .read([]): read(0), .read(one): .send(one), .read(four): .send(one),
      .read([items[9]]): .send([items[9]]), .read(Array(items[8...9])): .send([items[8]]),
    ]),
  PushStand(
    "a held one is out", [.read([]), .read(Array(items[0..<2]))],
    givenUp.merging([
      .decided: read(0),
      // Neither taken nor failed on: a pause of its own, and no pass at once again.
      .verdicts([.applied]): .settle, .verdicts([.deferred]): .hold(items[0]),
      .verdicts([.applied], ahead: second): .settle,
      .verdicts([.deferred], ahead: second): .hold(items[0]),
      failed: .hold(items[0]),
      tooLarge: .sendNothing, bad: .sendNothing,
      proxyTooLarge: .giveUp(.halve(isFromHub: false)),
      badRequest: .giveUp(.bisect(namesMutation: false)),
    ]) { $1 }),
  PushStand(
    "a person has decided while held ones were tried",
    [.read([]), .read(Array(items[0..<2])), .verdicts([.applied]), .done, .decided, .read([])],
    [
      .read([]): read(0), .read(one): .send(one), .read(four): .send(one),
      .read([items[9]]): .send([items[9]]), .read(Array(items[8...9])): .send([items[8]]),
    ]),
  PushStand(
    "a held one is held again", [.read([]), .read(Array(items[0..<2])), failed],
    [
      .held(hasRoom: true): .send([items[1]]),
      .held(hasRoom: false): .giveUp(.failed(retryAfter: nil)),
    ]),
  PushStand(
    "a held one was taken", [.read([]), .read(Array(items[0..<2])), .verdicts([.applied])],
    [.done: .send([items[1]])]),
  PushStand(
    "all held ones were tried, and one was taken",
    [.read(four), .verdicts(four.map { _ in .applied }), .done, .read([]), .read(one)]
      + [.verdicts([.applied]), .done],
    [
      // What has waited with it lies before what was sent already.
      .read([]): .finished, .read(four): .send(four), .read(one): .send(one),
      .read([items[9]]): .finished, .read(Array(items[8...9])): .send([items[8]]),
    ]),
  PushStand(
    "it was given up", [.read(one), .refused(.epochChanged)], [:]),
  PushStand("it is finished", [.read([]), .read([]), .read([])], [:]),
]

private let allEvents: [Event] =
  [
    .read([]), .read(one), .read(four), .read([items[9]]), .read(Array(items[8...9])),
    .verdicts([]), .verdicts([.applied]), .verdicts([.deferred]),
    .verdicts([.applied, .applied]), .verdicts([.deferred, .applied]),
    .verdicts([.applied, .duplicate, .rejected, .conflict]),
    .verdicts([.applied, .deferred, .applied, .deferred]), .verdicts(fourApplied),
    .verdicts(fourApplied, ahead: nextFour), .verdicts(fourApplied, ahead: [items[9]]),
    .verdicts(fourApplied, ahead: Array(items[8...9])),
    .verdicts([.applied, .duplicate, .rejected, .conflict], ahead: nextFour),
    .verdicts([.applied, .deferred, .applied, .deferred], ahead: nextFour),
    .verdicts([.applied], ahead: second), .verdicts([.deferred], ahead: second),
    .verdicts([.applied, .applied], ahead: nextFour),
    .counted(1), .counted(2), .counted(3), .counted(4), .done, .decided, .held(hasRoom: true),
    .held(hasRoom: false), failed, tooLarge, proxyTooLarge, bad, badRequest,
  ] + others.map { .refused($0) }

@Suite("The order of a push")
struct PushMachineTests {
  @Test("every event where it belongs leads on, and changes nothing elsewhere", arguments: stands)
  private func table(stand: PushStand) {
    #expect(Set(stand.next.keys).isSubset(of: allEvents))
    for event in allEvents {
      let before = stand.machine
      var machine = before
      let action = machine.handle(event)
      if let next = stand.next[event] {
        #expect(action == next, "\(event)")
        #expect(machine.order == next, "\(event)")
      } else {
        #expect(machine == before, "\(event) changed something")
        #expect(action == before.order, "\(event)")
      }
    }
  }

  /// A hub that fails whenever one of these is in a push.
  private func run(
    poison: Set<UInt64>, count: Int = 10, isHubDown: Bool = false
  ) -> (pushes: [[UInt64]], held: [UInt64], taken: Set<UInt64>, end: Action) {
    var machine = PushMachine(
      limits: HubLimits(), through: UInt64(count))
    var (pushes, held, taken) = ([[UInt64]](), [UInt64](), Set<UInt64>())
    var settled: [UInt64] = []
    while pushes.count < 10_000 {
      switch machine.order {
      case .read(let after, let countMax, _):
        let orders = (1...UInt64(count)).filter {
          $0 > after && !taken.contains($0) && !held.contains($0)
        }
        _ = machine.handle(
          .read(
            orders.prefix(countMax).map {
              PushItem(mutation: UUID(), order: $0, record: RecordID("r\($0)"))
            }))
      case .readHeld: _ = machine.handle(.read([]))
      case .send(let items):
        pushes.append(items.map(\.order))
        if isHubDown || !poison.isDisjoint(with: items.map(\.order)) {
          _ = machine.handle(failed)
        } else {
          settled = items.map(\.order)
          _ = machine.handle(.verdicts(items.map { _ in .applied }))
        }
      case .sendNothing:
        pushes.append([])
        _ = machine.handle(.verdicts([]))
      case .settle:
        taken.formUnion(settled)
        _ = machine.handle(.done)
      case .countFailure: _ = machine.handle(.counted(3))
      case .hold(let item):
        held.append(item.order)
        _ = machine.handle(.held(hasRoom: true))
      // Nothing is looked up ahead here.
      case .settleAndSend, .park, .giveUp, .finished: return (pushes, held, taken, machine.order)
      }
    }
    return (pushes, held, taken, machine.order)
  }

  @Test("one poison mutation among 500 is found within log2(n) tries, and all others go")
  func poison() {
    for place in [1, 2, 250, 499, 500] as [UInt64] {
      let result = run(poison: [place], count: 500)
      #expect(result.held == [place])
      #expect(result.taken.count == 499)
      #expect(result.end == .finished)
      // Each failing half, and what was taken on the way there and back.
      let failing = result.pushes.count { $0.contains(place) }
      #expect(failing <= 19, "\(failing) pushes with the poison in them")
      #expect(result.pushes.count <= 40)
    }
  }

  @Test("several are found in one pass")
  func several() {
    let result = run(poison: [3, 4, 200], count: 300)
    #expect(result.held == [3, 4, 200])
    #expect(result.taken.count == 297)
    #expect(result.end == .finished)
  }

  @Test("a hub that takes an empty push and fails on every mutation is no poison: it ends soon")
  func everything() {
    let result = run(poison: [], count: 500, isHubDown: true)
    #expect(result.held.count == 8)
    #expect(result.end == .giveUp(.failed(retryAfter: nil)))
    #expect(result.taken.isEmpty)
  }

  private static let steady = Array(repeating: MutationStatus.applied, count: 4)

  /// What is to be looked up in the commit that settles, or that comes before the first batch.
  @Test(
    "what is looked up ahead: some batches behind the one that goes, or that is settled by itself",
    arguments: [
      ([.read(four)], 4, 6),
      ([.read(four), .verdicts(steady, ahead: nextFour)], 8, 6),
      ([.read(four), .verdicts(steady)], 4, 6),
      ([.read(one), .verdicts([.deferred], ahead: second)], 1, 6),
      // Nothing goes ahead while the size is being found; what goes next is remembered all the same.
      ([.read(four), tooLarge, .read(Array(items[0..<2]))], nil, 0),
      (bisectedToOne, nil, 0),
      (bisectedToOne + [.verdicts([.applied])], 1, 1),
      ([.read([]), .read(one)], nil, 0),
      ([.read([]), .read(one), .verdicts([.applied])], nil, 0),
      ([], nil, 0),
      ([.read(four), failed], nil, 0),
    ] as [([Event], UInt64?, Int)])
  private func lookahead(_ events: [Event], after: UInt64?, count: Int) {
    let machine = PushStand("", events, [:]).machine
    #expect(machine.lookahead?.after == after)
    guard let next = machine.lookahead else { return }
    #expect(next.count == count)
    #expect(next.through == 9)
    #expect(next.byteCountMax == PushPlan(limits: HubLimits()).byteCountMax)
  }

  /// A hub that answers at random, and an outbox with several mutations of most records: in whatever
  /// way batches go ahead, mutations go in order, and none behind one of its record that waits.
  @Test("whatever the hub answers, nothing goes before its turn", arguments: 1...200)
  private func random(seed: UInt64) {
    var random = SplitMix(state: seed)
    let count = 60
    let outbox = (1...count).map { order in
      PushItem(
        mutation: UUID(), order: UInt64(order), record: RecordID("r\(random.next() % 12)"))
    }
    var machine = PushMachine(limits: HubLimits(pushMutations: 4), through: UInt64(count))
    var gone: Set<UInt64> = []
    var parked: Set<UInt64> = []
    /// Settled only once a commit has been made.
    var unsettled: [(item: PushItem, status: MutationStatus)] = []
    var waiting: Set<RecordID> = []
    var sent: [UInt64] = []
    func settle() {
      for (item, status) in unsettled {
        switch status {
        case .applied, .duplicate: gone.insert(item.order)
        case .conflict, .rejected: parked.insert(item.order)
        case .deferred: break
        }
      }
      unsettled = []
    }
    func batch(_ after: UInt64, _ countMax: Int) -> [PushItem] {
      let blocked = Set(outbox.filter { parked.contains($0.order) }.map(\.record))
      return Array(
        outbox.filter {
          $0.order > after && !gone.contains($0.order) && !blocked.contains($0.record)
        }.prefix(countMax))
    }
    func send(_ items: [PushItem]) -> Event {
      var statuses: [MutationStatus] = []
      // What goes ahead was looked up before the last batch was settled: it must not matter.
      for item in items {
        #expect(!waiting.contains(item.record), "\(item.order) goes behind one that waits")
        #expect(sent.last.map { $0 < item.order } ?? true, "\(item.order) is out of order")
        sent.append(item.order)
        let isApplied = random.next() % 12 != 0
        let others: [MutationStatus] = [.conflict, .rejected, .deferred]
        statuses.append(isApplied ? .applied : others[Int(random.next() % 3)])
      }
      let ahead = machine.lookahead.map { batch($0.after, $0.countMax) } ?? []
      settle()
      for (item, status) in zip(items, statuses) {
        unsettled.append((item, status))
        if status != .applied { waiting.insert(item.record) }
      }
      return .verdicts(statuses, ahead: ahead)
    }
    var aheadCount = 0
    for _ in 0..<1_000 {
      let event: Event
      switch machine.order {
      case .read(let after, let countMax, _): event = .read(batch(after, countMax))
      case .readHeld: event = .read([])
      case .send(let items): event = send(items)
      case .settleAndSend(let items):
        aheadCount += 1
        event = send(items)
      case .settle:
        settle()
        event = .done
      case .sendNothing, .countFailure, .park, .hold, .giveUp, .finished:
        #expect(machine.order == .finished)
        #expect(unsettled.isEmpty)
        #expect(aheadCount > 0)
        return
      }
      _ = machine.handle(event)
    }
    Issue.record("it does not end")
  }

  @Test("nothing of a record goes that the hub has put off and whose pause is not over")
  func waiting() {
    var machine = PushMachine(
      limits: HubLimits(pushMutations: 4), through: 9, waiting: [items[0].record, items[2].record])
    #expect(machine.handle(.read(one)) == read(1))
    #expect(machine.handle(.read(four)) == .send([items[1], items[3]]))
  }

  @Test("later mutations of a deferred one's record wait with it")
  func deferred() {
    var machine = PushMachine(limits: HubLimits(pushMutations: 1), through: 9)
    _ = machine.handle(.read(one))
    _ = machine.handle(.verdicts([.deferred]))
    #expect(machine.handle(.done) == read(1, 1))
    let later = PushItem(mutation: UUID(), order: 2, record: items[0].record)
    #expect(machine.handle(.read([later])) == read(2, 1))
    #expect(machine.handle(.read([items[2]])) == .send([items[2]]))
  }
}

/// Numbers from a seed, the same on every machine.
private struct SplitMix: RandomNumberGenerator {
  var state: UInt64

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var z = state
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
  }
}

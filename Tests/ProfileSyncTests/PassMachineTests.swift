import Foundation
import HubProtocol
import ProfileStore
import ProfileSync
import Testing

/// Drives the machine as a runner would, without doing anything.
private struct Drive {
  static let epoch = UUID()
  static let next = UUID()
  static let scan = UUID()

  var goal = PassGoal.ordinary
  /// The area: a finished scan, a cursor at 100 by default.
  var facts = PassFacts(
    owner: Data("owner".utf8), client: ClientIdentity(id: UUID(), isRegistered: true),
    cursor: Cursor(epoch: Self.epoch, sequence: 100), hasFinishedScan: true)
  var hub = Standing()
  /// What the hub says when it is asked a second time.
  var hubAfterwards: Standing?
  /// Answers that are not for use: the n-th time that a step is performed, from 1.
  var refusals: [Refusal] = []
  /// How many legs there are.
  var legCount = 1
  var sends = false
  /// Others write faster than the pulls read.
  var givesUpPulling = false
  /// The app decides conflicts; what it decides, the n-th time that it is asked.
  var resolves = false
  var decisions: [(sendsAgain: Bool, discards: Bool)] = []

  struct Standing {
    var epoch = Drive.epoch
    var highWater: UInt64 = 200
    var minimumCursor: UInt64 = 0
  }

  struct Refusal {
    var step: Kind
    var time = 1
    var action: AnswerAction
  }

  /// A step without its values.
  enum Kind: Hashable {
    case verify, register, begin, discards, resolve, push, leg, finishLegs, pull, finishScan

    init(_ step: PassStep) {
      self =
        switch step {
        case .verify: .verify
        case .register: .register
        case .begin: .begin
        case .discards: .discards
        case .resolve: .resolve
        case .push: .push
        case .leg: .leg
        case .finishLegs: .finishLegs
        case .pull: .pull
        case .finishScan: .finishScan
        }
    }
  }

  /// The machine at each step.
  func machines() throws -> [PassMachine] {
    var machines: [PassMachine] = []
    _ = try run { machines.append($0) }
    return machines
  }

  /// The steps that were ordered, and how it ended.
  func run(
    _ visit: (PassMachine) -> Void = { _ in }
  ) throws -> (steps: [PassStep], end: PassMachine.Action) {
    var machine = PassMachine(goal: goal, facts: facts, resolves: resolves)
    var steps: [PassStep] = []
    var times: [Kind: Int] = [:]
    var legs = 0
    var action = machine.order
    while case .perform(let step) = action {
      try #require(steps.count < 60, "the machine does not end")
      steps.append(step)
      visit(machine)
      let kind = Kind(step)
      times[kind, default: 0] += 1
      if let refusal = refusals.first(where: { $0.step == kind && $0.time == times[kind] }) {
        action = machine.handle(.answered(refusal.action))
        continue
      }
      switch step {
      case .verify:
        let standing = times[kind] == 1 ? hub : hubAfterwards ?? hub
        action = machine.handle(.verified(try answer(standing)))
      case .leg:
        legs += 1
        action = machine.handle(.legDelivered(more: legs < legCount))
      case .pull where givesUpPulling: action = machine.handle(.pullGivenUp)
      case .resolve:
        let time = (times[kind] ?? 1) - 1
        let decision = time < decisions.count ? decisions[time] : (false, false)
        action = machine.handle(
          .resolved(sendsAgain: decision.0, discards: decision.1))
      case .push where sends: action = machine.handle(.sent)
      case .begin:
        legs = 0
        action = machine.handle(.done(step))
      default: action = machine.handle(.done(step))
      }
    }
    return (steps, action)
  }

  func answer(_ standing: Standing) throws -> SessionAnswer {
    SessionAnswer(
      nonce: UUID(), hub: UUID(), epoch: standing.epoch, lineage: [],
      account: try AccountID("alice"), highWater: standing.highWater,
      minimumCursor: standing.minimumCursor, idempotencyFloor: 0, empty: false, expiresAt: 0,
      limits: HubLimits())
  }

  static func begin(
    _ kind: ScanState.Kind, _ epoch: UUID = Self.epoch, until: UInt64 = 200
  ) -> PassStep {
    .begin(kind, epoch: epoch, until: until)
  }

  mutating func setScan(
    _ kind: ScanState.Kind, _ phase: ScanState.Phase = .legs, until: UInt64 = 150,
    epoch: UUID = Self.epoch
  ) {
    facts.scan = ScanState(id: Self.scan, kind: kind, epoch: epoch, until: until, phase: phase)
  }
}

@Suite("The order of a pass")
struct PassOrderTests {
  private static let scanned: [PassStep] = [
    .leg, .finishLegs, .pull, .finishScan, .discards, .push,
  ]
  private static let replayed: [PassStep] = [.leg, .finishLegs, .finishScan, .pull]

  private func expect(
    _ drive: Drive, _ steps: [PassStep], _ end: PassMachine.Action = .finish(continues: false),
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let result = try drive.run()
    #expect(result.steps == steps, sourceLocation: sourceLocation)
    #expect(result.end == end, sourceLocation: sourceLocation)
  }

  @Test("sends the outbox, then pulls")
  func ordinary() throws {
    try expect(Drive(), [.verify, .discards, .push, .pull])
    try expect(Drive(sends: true), [.verify, .discards, .push, .pull])
  }

  @Test("registers the client first when the hub has not heard of it")
  func register() throws {
    var drive = Drive()
    drive.facts.client.isRegistered = false
    try expect(drive, [.verify, .register, .discards, .push, .pull])
  }

  @Test("pulls first and sends after while the area has never finished a scan")
  func first() throws {
    var drive = Drive(sends: true)
    drive.facts.cursor = nil
    drive.facts.hasFinishedScan = false
    // What was sent comes back.
    try expect(drive, [.verify, Drive.begin(.first)] + Self.scanned + [.pull])
    drive.sends = false
    try expect(drive, [.verify, Drive.begin(.first)] + Self.scanned)
    // A cursor does not mean that it was finished.
    drive.facts.cursor = Cursor(epoch: Drive.epoch, sequence: 100)
    try expect(drive, [.verify, Drive.begin(.first)] + Self.scanned)
    drive.goal = .replay
    try expect(drive, [.verify, Drive.begin(.first)] + Self.scanned)
  }

  @Test("pulls first and sends after when the cursor is below the hub's minimumCursor")
  func belowMinimum() throws {
    for goal in [PassGoal.ordinary, .replay] {
      var drive = Drive(goal: goal)
      drive.hub.minimumCursor = 101
      try expect(drive, [.verify, Drive.begin(.expired)] + Self.scanned)
      drive.hub.minimumCursor = 100
      try expect(
        drive,
        goal == .ordinary
          ? [.verify, .discards, .push, .pull]
          : [.verify, .discards, .push, Drive.begin(.replay)] + Self.replayed)
    }
  }

  @Test("of a replay that nothing forces sends first, and pulls from until at the end")
  func replay() throws {
    try expect(
      Drive(goal: .replay), [.verify, .discards, .push, Drive.begin(.replay)] + Self.replayed)
  }

  @Test("ends a forced scan only when the pull from until came to the end")
  func tailGivenUp() throws {
    var drive = Drive()
    drive.givesUpPulling = true
    drive.setScan(.expired, .tail)
    try expect(drive, [.verify, .pull])
    drive.setScan(.newEpoch)
    try expect(drive, [.verify, .leg, .finishLegs, .pull])
    drive.facts.scan = nil
    try expect(drive, [.verify, .discards, .push, .pull])
  }

  @Test("goes on with a forced scan before an ordinary pull, in plain passes too")
  func stored() throws {
    for kind in [ScanState.Kind.first, .expired, .newEpoch] {
      for goal in [PassGoal.ordinary, .continuing(scan: Drive.scan)] {
        var drive = Drive(goal: goal)
        drive.setScan(kind)
        drive.facts.hasFinishedScan = kind != .first
        try expect(drive, [.verify] + Self.scanned)
        drive.setScan(kind, .tail)
        try expect(drive, [.verify, .pull, .finishScan, .discards, .push])
      }
      // A replay from the start begins it again, as what it was.
      var drive = Drive(goal: .replay)
      drive.setScan(kind)
      try expect(drive, [.verify, Drive.begin(kind)] + Self.scanned)
    }
  }

  @Test("leaves a replay that the app has not asked to go on where it is")
  func idleReplay() throws {
    for phase in [ScanState.Phase.legs, .tail] {
      var drive = Drive()
      drive.setScan(.replay, phase)
      try expect(drive, [.verify, .discards, .push, .pull])
    }
  }

  @Test("takes all legs of a forced scan, and one of a replay")
  func legs() throws {
    var drive = Drive(legCount: 3)
    drive.setScan(.expired)
    try expect(drive, [.verify, .leg, .leg] + Self.scanned)
    drive.goal = .replay
    try expect(drive, [.verify, Drive.begin(.expired), .leg], .finish(continues: true))
    drive.facts.scan = nil
    try expect(
      drive, [.verify, .discards, .push, Drive.begin(.replay), .leg], .finish(continues: true))
  }

  @Test("goes on where the continuation says, also after it was cut off at its end")
  func continuing() throws {
    var drive = Drive(goal: .continuing(scan: Drive.scan))
    drive.setScan(.replay)
    try expect(drive, [.verify, .discards, .push] + Self.replayed)
    drive.legCount = 2
    try expect(drive, [.verify, .discards, .push, .leg], .finish(continues: true))
    drive.setScan(.replay, .tail)
    try expect(drive, [.verify, .discards, .push, .finishScan, .pull])
  }

  @Test("asks nothing for a continuation whose replay is over, or another one's")
  func expired() throws {
    var drive = Drive(goal: .continuing(scan: Drive.scan))
    try expect(drive, [], .stop(.continuationExpired))
    drive.setScan(.replay)
    drive.goal = .continuing(scan: UUID())
    try expect(drive, [], .stop(.continuationExpired))
  }

  @Test("begins a replay again whose until the hub has purged meanwhile")
  func ownUntil() throws {
    var drive = Drive(goal: .continuing(scan: Drive.scan))
    drive.setScan(.replay, until: 90)
    drive.hub.minimumCursor = 95
    try expect(drive, [.verify, .discards, .push, Drive.begin(.replay)] + Self.replayed)
    for kind in [ScanState.Kind.first, .expired, .newEpoch] {
      drive.goal = .ordinary
      drive.setScan(kind, until: 90)
      try expect(drive, [.verify, Drive.begin(kind)] + Self.scanned)
    }
  }

  @Test("asks nothing for an account that is erased at the hub")
  func frozen() throws {
    var drive = Drive()
    drive.facts.isErasedAtHub = true
    try expect(drive, [], .stop(.accountErased))
  }
}

@Suite("Another epoch")
struct PassEpochTests {
  private func run(_ drive: Drive) throws -> (steps: [PassStep], end: PassMachine.Action) {
    try drive.run()
  }

  @Test("stops the pass with an error of its own")
  func stops() throws {
    for goal in [PassGoal.ordinary, .continuing(scan: Drive.scan)] {
      var drive = Drive(goal: goal)
      drive.setScan(.replay)
      drive.hub.epoch = Drive.next
      let result = try run(drive)
      #expect(result.steps == [.verify])
      #expect(result.end == .stop(.epochChanged))
    }
    // Seen later in the pass, it stops it too.
    for step in [Drive.Kind.push, .pull, .discards] {
      let drive = Drive(refusals: [.init(step: step, action: .epochChanged)])
      #expect(try run(drive).end == .stop(.epochChanged))
    }
  }

  @Test("is taken up by a replay, which pulls first")
  func replay() throws {
    var drive = Drive(goal: .replay)
    drive.hub.epoch = Drive.next
    let result = try run(drive)
    #expect(
      result.steps == [
        .verify, Drive.begin(.newEpoch, Drive.next), .leg, .finishLegs, .pull, .finishScan,
        .discards, .push,
      ])
    #expect(result.end == .finish(continues: false))
  }

  @Test("that was left is never taken up again, not even by a replay")
  func left() throws {
    for goal in [PassGoal.ordinary, .replay] {
      var drive = Drive(goal: goal)
      drive.hub.epoch = Drive.next
      drive.facts.lineage = [LineageEntry(epoch: Drive.next, forkedAt: 5)]
      let result = try run(drive)
      #expect(result.steps == [.verify])
      #expect(result.end == .stop(.epochAlreadyLeft))
    }
  }

  @Test("that a replay is taking up counts as the area's, before the cursor has come there")
  func halfWay() throws {
    var drive = Drive()
    drive.setScan(.newEpoch, epoch: Drive.next)
    drive.hub.epoch = Drive.next
    #expect(try run(drive).steps.contains(.leg))
    drive.hub.epoch = Drive.epoch
    #expect(try run(drive).end == .stop(.epochChanged))
  }
}

@Suite("An answer that is not for use, in a pass")
struct PassRefusalTests {
  @Test(
    "stops it with its own error, whatever step it was",
    arguments: [
      (.stopForSecurity, .accountMismatch), (.epochChanged, .epochChanged),
      (.networkTrouble(retryAfter: nil), .badAnswer),
      (.backOff(retryAfter: .seconds(1)), .hubUnavailable),
      (.failed(retryAfter: nil), .hubUnavailable),
      (.halve(isFromHub: false), .hubUnavailable), (.halve(isFromHub: true), .refused),
      (.bisect(namesMutation: true), .refused), (.refreshToken, .needsAuthentication),
      (.stop(.accountDisabled), .accountDisabled),
      (.stop(.clientBoundElsewhere), .clientBoundElsewhere), (.stop(.badCursor), .refused),
      (.stop(.notFound), .refused), (.stop(.methodNotAllowed), .refused),
      (.stop(.unsupportedMediaType), .refused), (.stop(.headersTooLarge), .refused),
    ] as [(AnswerAction, SyncError.Code)])
  func stops(action: AnswerAction, code: SyncError.Code) throws {
    for step in [Drive.Kind.verify, .discards, .push, .pull] {
      let result = try Drive(refusals: [.init(step: step, action: action)]).run()
      #expect(result.end == .stop(code))
      #expect(result.steps.last.map(Drive.Kind.init) == step)
    }
    for step in [Drive.Kind.register, .leg, .finishScan] {
      var drive = Drive(refusals: [.init(step: step, action: action)])
      drive.facts.client.isRegistered = false
      drive.setScan(.expired)
      let result = try drive.run()
      #expect(result.end == .stop(code))
      #expect(result.steps.last.map(Drive.Kind.init) == step)
    }
  }

  @Test("client_unknown registers the client once, then sends again")
  func registers() throws {
    var drive = Drive(refusals: [.init(step: .push, action: .registerClient)])
    #expect(try drive.run().steps == [.verify, .discards, .push, .register, .push, .pull])
    drive.refusals.append(.init(step: .push, time: 2, action: .registerClient))
    #expect(try drive.run().end == .stop(.refused))
    // Registered in this very pass, and unknown all the same.
    drive.refusals = [.init(step: .push, action: .registerClient)]
    drive.facts.client.isRegistered = false
    #expect(try drive.run().end == .stop(.refused))
  }

  @Test("account_erased freezes the profile")
  func freezes() throws {
    for step in [Drive.Kind.verify, .push, .pull] {
      #expect(try Drive(refusals: [.init(step: step, action: .freeze)]).run().end == .freeze)
    }
  }

  private static let scanned: [PassStep] = [
    .leg, .finishLegs, .pull, .finishScan, .discards, .push,
  ]

  @Test("cursor_expired leads to a scan from zero, after the hub was asked where it stands")
  func expired() throws {
    for step in [Drive.Kind.push, .pull] {
      var drive = Drive(refusals: [.init(step: step, action: .scanFromZero)])
      drive.hubAfterwards = Drive.Standing(highWater: 300, minimumCursor: 250)
      let result = try drive.run()
      let before: [PassStep] = [.verify, .discards, .push, .pull]
      #expect(
        result.steps == before.prefix(step == .push ? 3 : 4)
          + [.verify, Drive.begin(.expired, until: 300)] + Self.scanned)
      #expect(result.end == .finish(continues: false))
    }
  }

  @Test("cursor_expired for a scan's own until begins it again, as what it was")
  func ownUntil() throws {
    for kind in [ScanState.Kind.first, .expired, .newEpoch] {
      for (phase, step) in [(ScanState.Phase.legs, Drive.Kind.leg), (.tail, .pull)] {
        var drive = Drive(refusals: [.init(step: step, action: .scanFromZero)])
        drive.setScan(kind, phase)
        drive.hubAfterwards = Drive.Standing(highWater: 300)
        let steps = try drive.run().steps
        #expect(steps.suffix(8) == [.verify, Drive.begin(kind, until: 300)] + Self.scanned)
      }
    }
    var drive = Drive(
      goal: .continuing(scan: Drive.scan),
      refusals: [.init(step: .leg, action: .scanFromZero)])
    drive.setScan(.replay)
    #expect(
      try drive.run().steps == [
        .verify, .discards, .push, .leg, .verify, Drive.begin(.replay), .leg, .finishLegs,
        .finishScan, .pull,
      ])
  }

  @Test("cursor_expired again after a scan that was finished stops the pass")
  func again() throws {
    var drive = Drive(
      refusals: [
        .init(step: .pull, action: .scanFromZero),
        .init(step: .push, time: 2, action: .scanFromZero),
      ])
    let result = try drive.run()
    #expect(result.end == .stop(.cursorExpired))
    #expect(result.steps.count(where: { $0 == .leg }) == 1)
    // A hub that says nothing else does not keep a pass busy for ever.
    drive.refusals = (1...9).map { .init(step: .pull, time: $0, action: .scanFromZero) }
    let endless = try drive.run()
    #expect(endless.end == .stop(.cursorExpired))
    #expect(endless.steps.count(where: { $0 == .leg }) == 2)
  }
}

@Suite("Conflicts that the app decides, in a pass")
struct PassResolvingTests {
  private func expect(
    _ drive: Drive, _ steps: [PassStep], sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let result = try drive.run()
    #expect(result.steps == steps, sourceLocation: sourceLocation)
    #expect(result.end == .finish(continues: false), sourceLocation: sourceLocation)
  }

  @Test("are asked about before anything is sent, and again after it was")
  func order() throws {
    var drive = Drive(resolves: true)
    try expect(drive, [.verify, .discards, .resolve, .push, .resolve, .pull])
    drive.setScan(.newEpoch)
    try expect(
      drive,
      [.verify, .leg, .finishLegs, .pull, .finishScan, .discards, .resolve, .push, .resolve])
    drive.sends = true
    try expect(
      drive,
      [.verify, .leg, .finishLegs, .pull, .finishScan, .discards, .resolve, .push, .resolve, .pull])
  }

  @Test("that wait already are sent with the others; the hub's version is handed over first")
  func waiting() throws {
    var drive = Drive(resolves: true, decisions: [(true, false)])
    try expect(drive, [.verify, .discards, .resolve, .push, .resolve, .pull])
    drive.decisions = [(false, true)]
    try expect(drive, [.verify, .discards, .resolve, .discards, .push, .resolve, .pull])
  }

  @Test("are sent again in the same pass, three times at most, and then all of them were sent")
  func again() throws {
    var drive = Drive(resolves: true, decisions: [(false, false), (true, false)])
    try expect(
      drive, [.verify, .discards, .resolve, .push, .resolve, .push, .resolve, .pull])
    drive.decisions = [(false, false), (true, true), (true, false), (true, false), (true, false)]
    try expect(
      drive,
      [.verify, .discards, .resolve, .push, .resolve, .discards, .push, .resolve, .push]
        + [.resolve, .push, .pull])
  }
}

@Suite("An event that does not belong to what a pass has ordered")
struct PassStrayEventTests {
  private static let events: [PassMachine.Event] = [
    .done(.verify), .done(.register), .done(Drive.begin(.first)), .done(.discards),
    .done(.resolve), .done(.push), .done(.leg), .done(.finishLegs), .done(.pull),
    .done(.finishScan), .sent, .resolved(sendsAgain: true, discards: true),
    .resolved(sendsAgain: false, discards: false), .pullGivenUp, .legDelivered(more: true),
    .legDelivered(more: false), .answered(.use),
  ]

  /// What each step can end with, beside an answer that is not for use.
  private static func ends(_ step: PassStep) -> [PassMachine.Event] {
    switch step {
    case .verify: []
    case .register, .begin, .discards, .finishLegs, .finishScan: [.done(step)]
    case .resolve:
      [
        .resolved(sendsAgain: true, discards: true), .resolved(sendsAgain: false, discards: false),
      ]
    case .push: [.done(.push), .sent]
    case .leg: [.legDelivered(more: true), .legDelivered(more: false)]
    case .pull: [.done(.pull), .pullGivenUp]
    }
  }

  @Test("changes nothing, at any step of any pass")
  func stray() throws {
    var drives: [Drive] = [Drive(resolves: true), Drive(goal: .replay)]
    var first = Drive()
    first.facts = PassFacts(
      owner: Data("owner".utf8), client: ClientIdentity(id: UUID(), isRegistered: false))
    drives.append(first)
    var seen: Set<Drive.Kind> = []
    for drive in drives {
      for machine in try drive.machines() {
        guard case .perform(let step) = machine.order else { continue }
        seen.insert(Drive.Kind(step))
        for event in Self.events + [.verified(try drive.answer(drive.hub))] {
          if Self.ends(step).contains(event) { continue }
          if case .verified = event, step == .verify { continue }
          var other = machine
          #expect(other.handle(event) == machine.order)
          #expect(other == machine, "\(event) changed something at \(step)")
        }
      }
    }
    #expect(seen.count == 10)
  }

  @Test("changes nothing once the pass is over")
  func over() throws {
    for refusal in [AnswerAction.epochChanged, .freeze] {
      var machine = PassMachine(goal: .ordinary, facts: Drive().facts)
      _ = machine.handle(.answered(refusal))
      let before = machine
      for event in Self.events + [.answered(.backOff(retryAfter: nil)), .answered(.scanFromZero)] {
        _ = machine.handle(event)
        #expect(machine == before)
      }
    }
  }
}

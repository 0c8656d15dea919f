import Foundation
import HubProtocol
import ProfileStore
import ProfileSync
import Testing

@Suite("The plan of a push")
struct PushPlanTests {
  private static func plan(_ pushMutations: Int = 500, pushBytes: Int = 8 << 20) -> PushPlan {
    PushPlan(limits: HubLimits(pushMutations: pushMutations, pushBytes: pushBytes))
  }

  @Test(
    "keeps to the hub's limits, and to 500 mutations",
    arguments: [(500, 500), (501, 500), (7, 7), (1, 1), (0, 1), (-3, 1)])
  func limits(announced: Int, taken: Int) {
    #expect(Self.plan(announced).countMax == taken)
    #expect(Self.plan(pushBytes: 4_096).byteCountMax == 1)
    #expect(Self.plan(pushBytes: 1 << 20).byteCountMax < 1 << 20)
  }

  @Test("takes 32 MiB into memory at most, whatever the hub announces")
  func ceiling() {
    #expect(Self.plan(pushBytes: 1 << 53).byteCountMax == 32 << 20)
    #expect(Self.plan(pushBytes: .max).byteCountMax == 32 << 20)
  }

  @Test("halves a batch that is too large, down to a single mutation, and grows again")
  func halving() {
    var plan = Self.plan(100)
    var sizes: [Int] = []
    while plan.countMax > 1 {
      #expect(plan.refused(.halve(isFromHub: true), count: plan.countMax) == .again)
      sizes.append(plan.countMax)
    }
    #expect(sizes == [50, 25, 12, 6, 3, 1])
    plan.accepted()
    #expect(plan.countMax == 2)
    for _ in 0..<10 { plan.accepted() }
    #expect(plan.countMax == 100)
  }

  @Test(
    "parks a single mutation only if the hub itself named it, and takes an empty push",
    arguments: [
      (.halve(isFromHub: true), .parkIfEmptyPushIsAccepted(.tooLarge)),
      (.halve(isFromHub: false), .giveUp),
      (.bisect(namesMutation: true), .parkIfEmptyPushIsAccepted(.rejected)),
      (.bisect(namesMutation: false), .giveUp),
    ] as [(AnswerAction, PushPlan.Decision)])
  func single(action: AnswerAction, decision: PushPlan.Decision) {
    var plan = Self.plan()
    #expect(plan.refused(action, count: 1) == decision)
    #expect(plan.countMax == 500)
    #expect(plan.refused(action, count: 2) == .again)
    #expect(plan.countMax == 1)
  }

  @Test(
    "leaves every other answer to the pass and stays as it is",
    arguments: [
      .stopForSecurity, .epochChanged, .networkTrouble(retryAfter: nil), .backOff(retryAfter: nil),
      .failed(retryAfter: nil), .refreshToken, .registerClient, .scanFromZero, .freeze,
      .stop(.notFound),
    ] as [AnswerAction])
  func others(action: AnswerAction) {
    var plan = Self.plan()
    #expect(plan.refused(action, count: 500) == .giveUp)
    #expect(plan.refused(action, count: 1) == .giveUp)
    #expect(plan.countMax == 500)
  }

  @Test("gives up an empty push that is refused")
  func empty() {
    for action in [.halve(isFromHub: true), .bisect(namesMutation: true)] as [AnswerAction] {
      var plan = Self.plan()
      #expect(plan.refused(action, count: 0) == .giveUp)
    }
  }

  @Test("settles what the hub has taken or refused for good; deferred stays")
  func verdicts() {
    let current = WireRecord(
      id: "a", version: 9, deleted: false, payload: nil, isPayloadOmitted: true)
    let known = HubVersion(version: 9, isDeleted: false, payload: nil, isPayloadOmitted: true)
    func settlement(_ status: MutationStatus, code: String? = nil) -> Settlement? {
      PushPlan.settlement(
        of: MutationResult(
          mutation: UUID(), status: status, version: 8, code: code, current: current))
    }
    #expect(settlement(.applied) == .acknowledged(version: 8))
    #expect(settlement(.duplicate) == .acknowledged(version: 8))
    #expect(settlement(.conflict) == .parked(Parked(reason: .conflict, current: known)))
    #expect(
      settlement(.rejected, code: "bad_base")
        == .parked(Parked(reason: .rejected, code: "bad_base", current: known)))
    #expect(settlement(.deferred, code: "busy") == nil)
  }
}

@Suite("The answer to a push")
struct PushCheckTests {
  private static let mutations = ["a", "b"].map { id in
    PushItem(mutation: UUID(), order: 1, record: RecordID(id))
  }

  private static func fault(_ change: (inout PushAnswer) -> Void) throws -> String? {
    var answer = PushAnswer(
      hub: UUID(), epoch: UUID(), account: try AccountID("alice"), highWater: 10,
      results: [
        MutationResult(mutation: mutations[0].mutation, status: .applied, version: 9),
        MutationResult(mutation: mutations[1].mutation, status: .duplicate, version: 10),
      ])
    change(&answer)
    return PushCheck.fault(in: answer, asked: mutations)
  }

  @Test("that has a verdict on each mutation, in order, may be used")
  func right() throws {
    #expect(try Self.fault { _ in } == nil)
    #expect(
      try Self.fault { answer in
        for (index, status) in [MutationStatus.conflict, .deferred].enumerated() {
          answer.results[index].status = status
          answer.results[index].version = nil
        }
      } == nil)
  }

  @Test("with verdicts on other mutations, too few, too many or in another order is not used")
  func others() throws {
    #expect(try Self.fault { $0.results.reverse() } != nil)
    #expect(try Self.fault { $0.results.removeLast() } != nil)
    #expect(try Self.fault { $0.results.append($0.results[0]) } != nil)
    #expect(try Self.fault { $0.results[1].mutation = UUID() } != nil)
  }

  @Test("with an applied mutation that has no version, or one above the high water, is not used")
  func versions() throws {
    for status in [MutationStatus.applied, .duplicate] {
      for version in [nil, 0, 11] as [UInt64?] {
        #expect(
          try Self.fault {
            $0.results[0].status = status
            $0.results[0].version = version
          } != nil)
      }
    }
  }

  @Test("whose conflict names another record is not used")
  func current() throws {
    func fault(_ id: RecordID, _ version: UInt64) throws -> String? {
      try Self.fault {
        $0.results[0].status = .conflict
        $0.results[0].current = WireRecord(id: id, version: version, deleted: true, payload: nil)
      }
    }
    #expect(try fault("a", 10) == nil)
    #expect(try fault("b", 10) != nil)
    #expect(try fault("a", 11) != nil)
  }
}

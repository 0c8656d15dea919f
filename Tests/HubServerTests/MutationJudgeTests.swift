import Foundation
import HubProtocol
import HubRules
import HubServer
import Testing

@Suite("The verdict on a mutation")
struct MutationJudgeTests {
  private static func state(highWater: UInt64 = 10, floor: UInt64 = 5) -> AccountState {
    var state = AccountState(epoch: UUID())
    state.highWater = highWater
    state.idempotencyFloor = floor
    return state
  }

  private static func judged(
    _ mutation: WireMutation, _ facts: MutationFacts = MutationFacts()
  ) -> MutationVerdict {
    var judge = MutationJudge(state: state())
    return judge.judge(mutation, digest: ContentDigest(of: mutation), facts: facts)
  }

  private static let put = WireMutation.put("r", firstSent: 7)
  private static let live = RecordHead(version: 3, deleted: false)
  private static let tombstone = RecordHead(version: 3, deleted: true)

  private static func stored(_ mutation: WireMutation, version: UInt64 = 3) -> StoredResult {
    StoredResult(version: version, digest: ContentDigest(of: mutation))
  }

  @Test("without a base the last writer wins, over a record, a tombstone and nothing")
  func lastWriter() {
    for newest in [nil, Self.live, Self.tombstone] {
      #expect(Self.judged(Self.put, MutationFacts(newest: newest)) == .applied(version: 11))
    }
    #expect(Self.judged(.delete("r", firstSent: 7)) == .applied(version: 11))
  }

  @Test("the same mutation again is a duplicate of its version, before anything else counts")
  func duplicate() {
    var old = WireMutation.put("r", base: .version(1), firstSent: 0)
    let facts = MutationFacts(stored: Self.stored(old, version: 2), newest: Self.live)
    #expect(Self.judged(old, facts) == .duplicate(version: 2))
    // Order, base and firstSent are not part of the content.
    old.order = 99
    old.base = nil
    #expect(Self.judged(old, facts) == .duplicate(version: 2))
  }

  @Test("the same ID with another kind, record or payload is mutation_reused")
  func reused() {
    let facts = MutationFacts(stored: Self.stored(Self.put), newest: Self.live)
    var others = [Self.put, Self.put, Self.put, Self.put]
    others[0].payload = Data("other".utf8)
    others[1].id = "s"
    others[2].kind = .delete
    others[2].payload = nil
    others[3].payload = Data()
    for other in others {
      guard case .rejected(.mutationReused, _) = Self.judged(other, facts) else {
        Issue.record("another content passed as the same")
        continue
      }
    }
  }

  @Test("the end of an ID and the start of a payload are kept apart")
  func digestSeparates() {
    let first = ContentDigest(of: .put("ab", "c"))
    #expect(first != ContentDigest(of: .put("a", "bc")))
    #expect(first == ContentDigest(of: .put("ab", "c")))
  }

  @Test("below the floor and not stored it is a conflict; at the floor it is applied")
  func floor() {
    guard case .conflict = Self.judged(.put("r", firstSent: 4)) else {
      Issue.record("it was not a conflict")
      return
    }
    #expect(Self.judged(.put("r", firstSent: 5)) == .applied(version: 11))
    #expect(Self.judged(.put("r", firstSent: 9_999)) == .applied(version: 11))
  }

  @Test("a base must be the newest version, 0 wants no live record")
  func versions() {
    func isConflict(_ base: UInt64, _ newest: RecordHead?) -> Bool {
      let mutation = WireMutation.put("r", base: .version(base), firstSent: 7)
      switch Self.judged(mutation, MutationFacts(newest: newest)) {
      case .conflict: return true
      default: return false
      }
    }
    #expect(!isConflict(0, nil))
    #expect(!isConflict(0, Self.tombstone))
    #expect(isConflict(0, Self.live))
    #expect(!isConflict(3, Self.live))
    #expect(!isConflict(3, Self.tombstone))
    #expect(isConflict(2, Self.live))
    #expect(isConflict(3, nil))
  }

  @Test("a base UUID means the version that mutation was given")
  func baseMutation() {
    let base = UUID()
    let mutation = WireMutation.put("r", base: .mutation(base), firstSent: 7)
    let result = BaseResult(version: 3, id: "r")
    let elsewhere = BaseResult(version: 3, id: "s")
    #expect(
      Self.judged(mutation, MutationFacts(newest: Self.live, base: result))
        == .applied(version: 11))
    #expect(Self.judged(mutation, MutationFacts(newest: Self.live)) == .blocked(by: base))
    let moved = MutationFacts(
      newest: RecordHead(version: 4, deleted: false), base: result)
    guard case .conflict = Self.judged(mutation, moved) else {
      Issue.record("it was not a conflict")
      return
    }
    let foreign = MutationFacts(newest: Self.live, base: elsewhere)
    guard case .rejected(.badBase, _) = Self.judged(mutation, foreign) else {
      Issue.record("it was not bad_base")
      return
    }
  }

  @Test("what was not applied blocks later mutations of its record, and of no other")
  func blocking() {
    var judge = MutationJudge(state: Self.state())
    func verdict(_ mutation: WireMutation, _ facts: MutationFacts) -> MutationVerdict {
      judge.judge(mutation, digest: ContentDigest(of: mutation), facts: facts)
    }
    let first = WireMutation.put("r", base: .version(9), firstSent: 7)
    guard case .conflict = verdict(first, MutationFacts(newest: Self.live)) else {
      Issue.record("it was not a conflict")
      return
    }
    let second = WireMutation.put("r", firstSent: 7)
    #expect(verdict(second, MutationFacts(newest: Self.live)) == .blocked(by: first.mutation))
    // blocked_by comes before the floor.
    let third = WireMutation.put("r", firstSent: 0)
    #expect(verdict(third, MutationFacts(newest: Self.live)) == .blocked(by: first.mutation))
    // A stored result comes before blocked_by, and does not lift it.
    let old = WireMutation.put("r", "old", firstSent: 7)
    #expect(
      verdict(old, MutationFacts(stored: Self.stored(old), newest: Self.live))
        == .duplicate(version: 3))
    #expect(
      verdict(.put("r", firstSent: 7), MutationFacts(newest: Self.live))
        == .blocked(by: first.mutation))
    #expect(verdict(.put("s", firstSent: 7), MutationFacts()) == .applied(version: 11))
    #expect(verdict(.put("t", firstSent: 7), MutationFacts()) == .applied(version: 12))
  }

  @Test("applied and duplicate do not block")
  func notBlocking() {
    var judge = MutationJudge(state: Self.state())
    let old = WireMutation.put("r", firstSent: 7)
    let facts = MutationFacts(stored: Self.stored(old), newest: Self.live)
    _ = judge.judge(old, digest: ContentDigest(of: old), facts: facts)
    let next = WireMutation.put("r", base: .version(3), firstSent: 7)
    #expect(
      judge.judge(
        next, digest: ContentDigest(of: next), facts: MutationFacts(newest: Self.live))
        == .applied(version: 11))
  }

  @Test("the last sequence is never exceeded")
  func sequenceEnd() {
    let state = Self.state(highWater: AccountState.sequenceMax)
    var judge = MutationJudge(state: state)
    #expect(
      judge.judge(Self.put, digest: ContentDigest(of: Self.put), facts: MutationFacts()) == .busy)
    #expect(judge.highWater == AccountState.sequenceMax)
  }

  @Test("mutations are judged by order, equal ones as listed")
  func order() {
    let mutations = [3, 1, 2, 1, 0].map { WireMutation.put("r", order: $0) }
    let plan = PushPlan(
      PushOutline(PushRequest(client: UUID(), epoch: UUID(), cursor: 0, mutations: mutations)),
      digests: SHA256Digests(), currentByteCountMax: 1, storedAt: 0)
    #expect(plan.judgingOrder == [4, 1, 3, 2, 0])
  }
}

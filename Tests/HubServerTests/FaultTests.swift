import Foundation
import HubProtocol
import HubServer
import Testing

@Suite("A fault on demand", .forEachHub)
struct FaultTests {
  private func prepared(
    enabled: Bool = true, _ body: (TestClient, UUID) async throws -> Void
  ) async throws {
    try await withHub {
      $0.faultsEnabled = enabled
    } _: { hub in
      let alice = try TestClient(hub)
      let epoch = try await alice.session().epoch
      try await alice.register()
      _ = try await alice.push((1...6).map { .put("r\($0)", "\($0)") }, epoch: epoch)
      try await body(alice, epoch)
    }
  }

  private func pull(
    _ alice: TestClient, _ epoch: UUID, after: UInt64 = 0, _ fault: String
  ) async throws -> RawAnswer {
    try await alice.pull(after: after, epoch: epoch, "&limit=3", ["Holdfast-Fault": fault])
  }

  private func page(
    _ alice: TestClient, _ epoch: UUID, after: UInt64 = 0, _ fault: String
  ) async throws -> ChangesPage {
    try await pull(alice, epoch, after: after, fault).message(ChangesPage.self)
  }

  @Test("is ignored unless faults are enabled, and unknown ones are a 400 only then")
  func disabled() async throws {
    try await prepared(enabled: false) { (alice, epoch) async throws in
      #expect(try await pull(alice, epoch, "throttle=9").status == 200)
      #expect(try await pull(alice, epoch, "no-such-fault").status == 200)
    }
    try await prepared { (alice, epoch) async throws in
      for wrong in ["no-such-fault", "throttle", "delay=x", "verdicts=maybe", "repeat-page=1"] {
        #expect(try await pull(alice, epoch, wrong).code == "bad_request")
      }
      #expect(try await pull(alice, epoch, "delay=1; endless-more").status == 200)
    }
  }

  @Test("drop-after-commit loses the answer and not the effect; the same push again is a duplicate")
  func dropAfterCommit() async throws {
    try await prepared { (alice, epoch) async throws in
      let put = WireMutation.put("new")
      await #expect(throws: RawHTTPError.ended(afterByteCount: 0)) {
        try await alice.push([put], epoch: epoch, ["Holdfast-Fault": "drop-after-commit"])
      }
      let again = try await alice.push([put], epoch: epoch).message(PushAnswer.self)
      #expect(again.results.map(\.status) == [.duplicate])
      #expect(again.results.map(\.version) == [7])
      #expect(again.highWater == 7)
    }
  }

  @Test("cut-body ends the connection within the body")
  func cutBody() async throws {
    try await prepared { (alice, epoch) async throws in
      for fault in ["cut-body", "cut-body=0", "cut-body=10", "cut-body=99999"] {
        await #expect(throws: RawHTTPError.self) { try await pull(alice, epoch, fault) }
      }
      #expect(try await pull(alice, epoch, "delay=0").status == 200)
    }
  }

  @Test("the other account stands in the body, or in the header, and only there")
  func otherAccount() async throws {
    try await prepared { (alice, epoch) async throws in
      let body = try await pull(alice, epoch, "other-account-body")
      #expect(body.header("Holdfast-Account") == "alice")
      #expect(try body.message(ChangesPage.self).account == AccountID("someone-else"))
      let header = try await pull(alice, epoch, "other-account-header")
      #expect(header.header("Holdfast-Account") == "someone-else")
      #expect(try header.message(ChangesPage.self).account == alice.account)
      let push = try await alice.push(
        [], epoch: epoch, ["Holdfast-Fault": "other-account-body"])
      #expect(try push.message(PushAnswer.self).account == AccountID("someone-else"))
    }
  }

  @Test("the counting ones count per account and header value")
  func counting() async throws {
    try await prepared { (alice, epoch) async throws in
      var statuses: [Int] = []
      for _ in 0..<4 { statuses.append(try await pull(alice, epoch, "throttle=2").status) }
      #expect(statuses == [429, 429, 200, 200])
      #expect(try await pull(alice, epoch, "throttle=1").header("Retry-After") == "1")
      let bob = try TestClient(alice.hub, "bob")
      let throttled = try await bob.send(
        "GET", "/v1/records?id=a", ["Holdfast-Fault": "throttle=2"])
      #expect(throttled.status == 429)
      var codes: [String?] = []
      for _ in 0..<4 {
        codes.append(try await pull(alice, epoch, "unauthorized-at-page=3").code)
      }
      #expect(codes == [nil, nil, "token_expired", nil])
    }
  }

  @Test("new-epoch comes once, purged-tombstones too")
  func newEpoch() async throws {
    try await prepared { (alice, epoch) async throws in
      let answer = try await pull(alice, epoch, "new-epoch=4")
      #expect(answer.code == "epoch_changed")
      let problem = try HubProblem(decoding: answer.body)
      #expect(problem.lineage == [LineageEntry(epoch: epoch, forkedAt: 4)])
      let new = try #require(problem.epoch)
      #expect(try await page(alice, new, "new-epoch=4").epoch == new)
      #expect(try await pull(alice, new, "purged-tombstones").code == "cursor_expired")
      _ = try await alice.push([.put("more")], epoch: new, cursor: 6)
      #expect(try await pull(alice, new, after: 6, "purged-tombstones").status == 200)
    }
  }

  @Test("pages misbehave in the way that was asked for")
  func pages() async throws {
    try await prepared { (alice, epoch) async throws in
      let first = try await page(alice, epoch, "repeat-page")
      let second = try await page(alice, epoch, after: 3, "repeat-page")
      #expect(second == first)
      #expect(try await page(alice, epoch, after: 3, "repeat-page").after == 3)
      _ = try await alice.push([.put("r1", "new")], epoch: epoch)
      let older = try await page(alice, epoch, after: 4, "older-versions")
      #expect(older.records.map(\.version) == [5, 6, 7])
      _ = try await alice.push([.put("r5", "new")], epoch: epoch)
      let shifted = try await page(alice, epoch, after: 4, "older-versions")
      #expect(shifted.records.map(\.id.text) == ["r6", "r1", "r5"])
      #expect(shifted.records.map(\.version) == [5, 6, 7])
      let stands = try await page(alice, epoch, after: 4, "cursor-stands")
      #expect(stands.next == 4 && stands.more && !stands.records.isEmpty)
      let back = try await page(alice, epoch, after: 4, "cursor-back")
      #expect(back.next == 3 && back.more)
      let endless = try await page(alice, epoch, after: 8, "endless-more")
      #expect(endless.more && endless.records.isEmpty && endless.next == 8)
    }
  }

  @Test("verdicts are imposed in list order, and nothing of them is applied")
  func verdicts() async throws {
    try await prepared { (alice, epoch) async throws in
      let mutations: [WireMutation] = [
        .put("a"), .put("b"), .put("r1"), .put("d"), .put("a"),
      ]
      let fault = ["Holdfast-Fault": "verdicts=rejected,applied,conflict,deferred"]
      let answer = try await alice.push(mutations, epoch: epoch, fault)
        .message(PushAnswer.self)
      #expect(
        answer.results.map(\.status) == [.rejected, .applied, .conflict, .deferred, .deferred])
      #expect(answer.results[2].current?.payload == Data("1".utf8))
      #expect(answer.results[3].code == "busy")
      #expect(answer.results[4].detail == mutations[0].mutation.wireText)
      #expect(answer.highWater == 7)
      let again = try await alice.push(mutations, epoch: epoch).message(PushAnswer.self)
      #expect(
        again.results.map(\.status) == [.applied, .duplicate, .applied, .applied, .applied])
    }
  }
}

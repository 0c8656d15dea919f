import Foundation
import HubProtocol
import HubServer
import Testing

@Suite("POST /v1/mutations", .forEachHub)
struct MutationsTests {
  private func prepared(
    _ change: (inout HubConfiguration) -> Void = { _ in },
    _ body: (TestClient, UUID) async throws -> Void
  ) async throws {
    try await withHub(change) { hub in
      let alice = try TestClient(hub)
      let epoch = try await alice.session().epoch
      try await alice.register()
      try await body(alice, epoch)
    }
  }

  private func results(_ answer: RawAnswer) throws -> [MutationResult] {
    #expect(answer.status == 200)
    return try answer.message(PushAnswer.self).results
  }

  @Test(
    "gives each applied mutation the next sequence, in order, in either form",
    arguments: WireFormat.allCases)
  func applied(format: WireFormat) async throws {
    try await prepared { alice, epoch in
      let mutations: [WireMutation] = [
        .put("c", order: 3), .put("a", order: 1), .put("b", order: 2), .delete("never", order: 9),
      ]
      let raw = try await alice.push(
        mutations, epoch: epoch, as: format, ["Accept": format.rawValue])
      let answer = try raw.message(PushAnswer.self, as: format)
      #expect(answer.highWater == 4)
      #expect(answer.results.map(\.mutation) == mutations.map(\.mutation))
      #expect(answer.results.map(\.status) == [.applied, .applied, .applied, .applied])
      #expect(answer.results.map(\.version) == [3, 1, 2, 4])
      let next = try results(try await alice.push([.put("d")], epoch: epoch))
      #expect(next.map(\.version) == [5])
    }
  }

  @Test("of an empty list is legal and changes nothing")
  func empty() async throws {
    try await prepared { alice, epoch in
      let answer = try await alice.push([], epoch: epoch)
      #expect(try results(answer) == [])
      #expect(try await alice.session().highWater == 0)
    }
  }

  @Test("again gives duplicates of the same versions, also from another client and in parts")
  func repeated() async throws {
    try await prepared { alice, epoch in
      let mutations = (0..<5).map { WireMutation.put("r\($0)", order: UInt64($0)) }
      let first = try results(try await alice.push(mutations, epoch: epoch))
      let again = try results(try await alice.push(mutations, epoch: epoch))
      #expect(again.map(\.status) == Array(repeating: .duplicate, count: 5))
      #expect(again.map(\.version) == first.map(\.version))
      let other = try TestClient(alice.hub, "alice")
      try await other.register()
      let mixed = [mutations[3], .put("new"), mutations[0]]
      let third = try results(try await other.push(mixed, epoch: epoch))
      #expect(third.map(\.status) == [.duplicate, .applied, .duplicate])
      #expect(third.map(\.version) == [4, 6, 1])
      var changed = mutations[0]
      changed.payload = Data("other".utf8)
      let reused = try results(try await alice.push([changed], epoch: epoch))
      #expect(reused[0].status == .rejected)
      #expect(reused[0].code == "mutation_reused")
      #expect(reused[0].current?.version == 1)
      // The same ID in another account is another mutation.
      let bob = try TestClient(alice.hub, "bob")
      let bobs = try await bob.session().epoch
      try await bob.register()
      #expect(
        try results(try await bob.push(mutations, epoch: bobs)).allSatisfy {
          $0.status == .applied
        })
    }
  }

  @Test("twice in one request counts as applied before")
  func twiceInOne() async throws {
    try await prepared { alice, epoch in
      let put = WireMutation.put("r")
      let both = try results(try await alice.push([put, put], epoch: epoch))
      #expect(both.map(\.status) == [.applied, .duplicate])
      #expect(both.map(\.version) == [1, 1])
    }
  }

  @Test("carries the newest record with conflict and rejected, tombstones too")
  func current() async throws {
    try await prepared { alice, epoch in
      _ = try await alice.push([.put("live", "old"), .delete("dead")], epoch: epoch)
      let answer = try results(
        try await alice.push(
          [
            .put("live", base: .version(0)), .put("dead", base: .version(9)),
            .put("none", base: .version(9)),
          ], epoch: epoch))
      #expect(answer.map(\.status) == [.conflict, .conflict, .conflict])
      #expect(answer[0].current?.payload == Data("old".utf8))
      #expect(answer[1].current?.deleted == true)
      #expect(answer[2].current == nil)
    }
  }

  @Test("follows bases through a chain of one request, and blocks behind a failure")
  func chains() async throws {
    try await prepared { alice, epoch in
      let first = WireMutation.put("r", "1", order: 1, base: .version(0))
      let second = WireMutation.put("r", "2", order: 2, base: .mutation(first.mutation))
      let third = WireMutation.put("r", "3", order: 3, base: .mutation(second.mutation))
      let chain = try results(try await alice.push([third, first, second], epoch: epoch))
      #expect(chain.map(\.status) == [.applied, .applied, .applied])
      #expect(chain.map(\.version) == [3, 1, 2])
      // Based on what is no longer the newest.
      let late = WireMutation.put("r", order: 1, base: .mutation(first.mutation))
      let behind = WireMutation.put("r", order: 2)
      let unknown = WireMutation.put("s", base: .mutation(UUID()))
      let foreign = WireMutation.put("t", base: .mutation(first.mutation))
      let answer = try results(
        try await alice.push([late, behind, unknown, foreign, .put("u")], epoch: epoch))
      #expect(answer.map(\.status) == [.conflict, .deferred, .deferred, .rejected, .applied])
      #expect(answer[1].code == "blocked_by")
      #expect(answer[1].detail == late.mutation.wireText)
      #expect(answer[2].code == "blocked_by")
      #expect(answer[3].code == "bad_base")
    }
  }

  @Test("leaves out current payloads once those of the answer reach pullBytes")
  func budget() async throws {
    try await prepared { configuration in
      configuration.limits.pullBytes = 1_024
    } _: { alice, epoch in
      let payload = String(repeating: "x", count: 600)
      let ids = ["a", "b", "c", "d"]
      _ = try await alice.push(ids.map { .put($0, payload) }, epoch: epoch)
      let again = ids.map { WireMutation.put($0, base: .version(0)) }
      let answer = try results(try await alice.push(again, epoch: epoch))
      #expect(answer.map { $0.current?.isPayloadOmitted } == [false, false, true, true])
      #expect(answer.map { $0.current?.version } == [1, 2, 3, 4])
    }
  }

  @Test("below the idempotency floor and not stored is a conflict, stored it is a duplicate")
  func floor() async throws {
    try await prepared { alice, epoch in
      let early = WireMutation.put("a")
      let late = WireMutation.put("b")
      _ = try await alice.push([early, late, .put("c")], epoch: epoch)
      try await alice.hub.purgeResults(of: alice.account, below: 2)
      let answer = try results(
        try await alice.push(
          [early, late, .put("new", firstSent: 1), .put("new", firstSent: 2)], epoch: epoch))
      #expect(answer.map(\.status) == [.conflict, .duplicate, .conflict, .deferred])
      #expect(try await alice.session().idempotencyFloor == 2)
      #expect(
        try results(try await alice.push([.put("new", firstSent: 2)], epoch: epoch))
          .map(\.status) == [.applied])
    }
  }

  @Test("takes payloads up to the limit, and names the one beyond it")
  func payloadLimit() async throws {
    try await prepared { configuration in
      configuration.limits.payloadBytes = 100
    } _: { alice, epoch in
      let fits = WireMutation.put("a", String(repeating: "x", count: 100))
      let tooLong = WireMutation.put("b", String(repeating: "x", count: 101))
      let refused = try await alice.push([fits, tooLong], epoch: epoch)
      #expect(refused.status == 413)
      #expect(try HubProblem(decoding: refused.body).index == 1)
      #expect(try await alice.session().highWater == 0)
      #expect(try results(try await alice.push([fits, .put("c", "")], epoch: epoch)).count == 2)
    }
  }

  @Test("takes as many mutations as pushMutations says")
  func countLimit() async throws {
    try await prepared { configuration in
      configuration.limits.pushMutations = 3
    } _: { alice, epoch in
      func push(_ count: Int) async throws -> RawAnswer {
        try await alice.push((0..<count).map { .put("r\($0)") }, epoch: epoch)
      }
      let refused = try await push(4)
      #expect(refused.code == "too_large")
      #expect(try await push(3).status == 200)
    }
  }

  @Test("that cannot be read changes nothing and names the mutation from 0")
  func forms() async throws {
    try await prepared { alice, epoch in
      let good =
        #"{"mutation":"\#(UUID().wireText)","order":0,"kind":"delete","id":"a","firstSent":0}"#
      let upper = UUID().uuidString
      let same = UUID().wireText
      let long = String(repeating: "a", count: 401)
      func mutation(_ rest: String, _ id: String = UUID().wireText) -> String {
        #"{"mutation":"\#(id)","order":0,"firstSent":0,\#(rest)}"#
      }
      let wrong = [
        mutation(#""kind":"put","id":"a""#), mutation(#""kind":"put","id":"a","payload":null"#),
        mutation(#""kind":"delete","id":"a","payload":"""#), mutation(#""kind":"move","id":"a""#),
        mutation(#""kind":"delete","id":"""#), mutation(#""kind":"delete","id":"\#(long)""#),
        mutation(#""kind":"put","id":"a","payload":"YQ""#),
        mutation(#""kind":"put","id":"a","payload":"YR==""#),
        mutation(#""kind":"put","id":"a","payload":7"#),
        mutation(#""kind":"delete","id":"a","base":-1"#),
        mutation(#""kind":"delete","id":"a","base":"\#(same)""#, same),
        mutation(#""kind":"delete","id":"a""#, upper == upper.lowercased() ? "x" : upper),
        #"{"mutation":"\#(same)","order":0,"kind":"delete","id":"a"}"#,
        #"{"mutation":"\#(same)","order":0,"kind":"delete","id":"a","firstSent":null}"#,
        #"{"mutation":"\#(same)","kind":"delete","id":"a","firstSent":0}"#,
        #"{"mutation":"\#(same)","order":0,"kind":"delete","id":"a","firstSent":9007199254740992}"#,
        "7",
      ]
      for text in wrong {
        let body =
          #"{"client":"\#(alice.client.wireText)","epoch":"\#(epoch.wireText)","cursor":0,"#
          + #""mutations":[\#(good),\#(text)]}"#
        let answer = try await alice.send(
          "POST", "/v1/mutations", ["Content-Type": "application/json"], body: Data(body.utf8))
        #expect(answer.code == "bad_mutation", "\(text)")
        #expect(try HubProblem(decoding: answer.body).index == 1)
      }
      for body in ["", "[]", "{", "{}", #"{"client":1}"#] {
        let answer = try await alice.send(
          "POST", "/v1/mutations", ["Content-Type": "application/json"], body: Data(body.utf8))
        #expect(answer.code == "bad_request")
      }
      #expect(try await alice.session().highWater == 0)
    }
  }
}

@Suite("Identity at the hub is bytes")
struct IdentityTests {
  private static let twins = [
    "Alice", "alice", "alic", "alice ", " alice", "alice/", "alice%2F", "..", "/", "a\u{0}b", "a",
    "e\u{301}", "\u{e9}", "👩‍👩‍👧", "a+b", "a b", "%", "\u{1}",
    String(repeating: "x", count: 256), String(repeating: "x", count: 255),
  ]

  @Test("each account has its own records, whatever its ID looks like")
  func accounts() async throws {
    try await withHub { hub in
      for name in Self.twins {
        let client = try TestClient(hub, name)
        let epoch = try await client.session().epoch
        try await client.register()
        let answer = try await client.push([.put("r", "of \(name)")], epoch: epoch)
        #expect(try answer.message(PushAnswer.self).results.map(\.version) == [1])
      }
      for name in Self.twins {
        let client = try TestClient(hub, name)
        let answer = try await client.send("GET", "/v1/records?id=r")
        let record = try answer.message(RecordAnswer.self)
        #expect(record.account == client.account)
        #expect(record.record?.payload == Data("of \(name)".utf8))
        #expect(
          answer.header("Holdfast-Account")
            == PercentEncoding.encode(bytes: client.account.bytes))
      }
    }
  }

  @Test("an account asserted in another spelling is a mismatch, and nothing is written")
  func assertions() async throws {
    try await withHub { hub in
      let alice = try TestClient(hub, "é")
      let epoch = try await alice.session().epoch
      try await alice.register()
      for other in ["e%CC%81", "%C3%89", "%C3%A9%20", "x", "%00", "%C3%A9%00"] {
        let answer = try await alice.push(
          [.put("r")], epoch: epoch, ["Holdfast-Account": other])
        #expect(answer.code == "account_mismatch")
        #expect(answer.header("Holdfast-Epoch") == nil)
      }
      for bad in ["%", "%C3", "%zz", "é"] {
        let answer = try await alice.push([.put("r")], epoch: epoch, ["Holdfast-Account": bad])
        #expect(answer.code == "bad_request")
      }
      for missing in [nil, ""] as [String?] {
        let answer = try await alice.push(
          [.put("r")], epoch: epoch, ["Holdfast-Account": missing])
        #expect(answer.code == "account_missing")
      }
      #expect(try await alice.session().highWater == 0)
      #expect(
        try await alice.push([.put("r")], epoch: epoch, ["Holdfast-Account": "%c3%a9"]).status
          == 200)
    }
  }

  @Test("each record has its own version, whatever its ID looks like")
  func records() async throws {
    try await withHub { hub in
      let alice = try TestClient(hub)
      let epoch = try await alice.session().epoch
      try await alice.register()
      let ids = Self.twins + [String(repeating: "y", count: 400)]
      let push = try await alice.push(ids.map { .put($0, $0) }, epoch: epoch)
      #expect(try push.message(PushAnswer.self).results.allSatisfy { $0.status == .applied })
      for id in ids {
        let target = "/v1/records?id=\(PercentEncoding.encode(bytes: id.utf8))"
        let record = try await alice.send("GET", target).message(RecordAnswer.self).record
        #expect(record?.id.bytes == Array(id.utf8))
        #expect(record?.payload == Data(id.utf8))
      }
      let page = try await alice.pull(epoch: epoch).message(ChangesPage.self)
      #expect(page.records.map(\.id.bytes) == ids.map { Array($0.utf8) })
    }
  }
}

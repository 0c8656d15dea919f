import Foundation
import HubProtocol
import HubServer
import Testing

@Suite("GET /v1/session", .forEachHub)
struct SessionTests {
  @Test(
    "says who the token is, and makes the account at its first request",
    arguments: WireFormat.allCases)
  func session(format: WireFormat) async throws {
    try await withHub { hub in
      let alice = try TestClient(hub)
      let nonce = UUID()
      let raw = try await alice.send(
        "GET", "/v1/session?nonce=\(nonce.wireText)",
        ["Accept": format.rawValue, "Holdfast-Account": "somebody%20else"])
      #expect(raw.status == 200)
      #expect(raw.header("Content-Type") == format.rawValue)
      let answer = try raw.message(SessionAnswer.self, as: format)
      #expect(answer.nonce == nonce)
      #expect(answer.hub == hub.hubID)
      #expect(answer.account == alice.account)
      #expect(answer.highWater == 0)
      #expect(answer.lineage == [])
      #expect(answer.empty)
      #expect(answer.limits == HubLimits(waitSeconds: 55))
      #expect(raw.header("Holdfast-Epoch") == answer.epoch.wireText)
      #expect(try await alice.session().epoch == answer.epoch)
      #expect(try await TestClient(hub, "bob").session().epoch != answer.epoch)
    }
  }

  @Test(
    "without a nonce that is a UUID in lower case is a 400",
    arguments: ["", "?nonce=", "?nonce=1", "?nonce=\(UUID().uuidString)A", "?other=1"])
  func nonce(query: String) async throws {
    try await withHub { hub in
      let answer = try await TestClient(hub).send("GET", "/v1/session\(query)")
      #expect(answer.code == "bad_request")
    }
  }

  @Test("is empty until there is a record or tombstone")
  func empty() async throws {
    try await withHub { hub in
      let alice = try TestClient(hub)
      let epoch = try await alice.session().epoch
      try await alice.register()
      #expect(try await alice.session().empty)
      _ = try await alice.push([.delete("x")], epoch: epoch)
      #expect(try await !alice.session().empty)
    }
  }

  @Test("names the second at which the token ends")
  func expiry() async throws {
    let directory = try TemporaryDirectory()
    try await withHub(.test(directory), now: { 1_000 }) { hub in
      let session = try await TestClient(hub).session()
      #expect(session.expiresAt == 4_600)
    }
  }
}

@Suite("PUT /v1/clients", .forEachHub)
struct ClientsTests {
  @Test("binds a client to its first account for ever, and renames it")
  func binding() async throws {
    try await withHub { hub in
      let alice = try TestClient(hub, "alice")
      let bob = try TestClient(hub, "bob")
      let first = try await alice.register(name: "phone")
      #expect(first.status == 201)
      let answer = try first.message(ClientAnswer.self)
      #expect(answer.client == alice.client)
      #expect(answer.name == "phone")
      #expect(answer.account == alice.account)
      #expect(try await alice.register(name: "tablet").status == 200)
      #expect(try await bob.register(alice.client).code == "client_bound_elsewhere")
      try await hub.erase(alice.account)
      try await hub.recreate(alice.account)
      #expect(try await bob.register(alice.client).code == "client_bound_elsewhere")
      #expect(try await alice.register().status == 200)
      // Registering takes no sequence.
      #expect(try await alice.session().highWater == 0)
    }
  }

  @Test("takes a name of 0 to 256 bytes")
  func names() async throws {
    try await withHub { hub in
      let alice = try TestClient(hub)
      #expect(try await alice.register(name: "").status == 201)
      #expect(try await alice.register(name: String(repeating: "é", count: 128)).status == 200)
      let long = try await alice.register(name: String(repeating: "é", count: 128) + "x")
      #expect(long.code == "bad_request")
    }
  }

  @Test("refuses a client that is no UUID, a missing body and another type")
  func forms() async throws {
    try await withHub { hub in
      let alice = try TestClient(hub)
      let json = ["Content-Type": "application/json"]
      func put(_ client: String, _ headers: [String: String?], _ body: String?) async throws
        -> String?
      {
        try await alice.send(
          "PUT", "/v1/clients/\(client)", headers, body: body.map { Data($0.utf8) }
        ).code
      }
      let good = UUID().wireText
      #expect(try await put("x", json, #"{"name":"a"}"#) == "bad_request")
      #expect(
        try await put("AAAAAAAA-0000-0000-0000-000000000000", json, #"{"name":"a"}"#)
          == "bad_request")
      #expect(try await put(good, json, nil) == "bad_request")
      #expect(try await put(good, json, "{}") == "bad_request")
      #expect(try await put(good, json, #"{"name":null}"#) == "bad_request")
      #expect(try await put(good, json, #"{"name":"a","name":"b"}"#) == "bad_request")
      #expect(try await put(good, [:], #"{"name":"a"}"#) == "unsupported_media_type")
      #expect(
        try await put(good, ["Content-Type": "text/json"], "{}") == "unsupported_media_type")
      let gzip = ["Content-Type": "application/json", "Content-Encoding": "gzip"]
      #expect(try await put(good, gzip, "{}") == "unsupported_media_type")
      let parameter = ["Content-Type": "Application/JSON; charset=utf-8"]
      #expect(try await put(good, parameter, #"{"name":"a","more":[1]}"#) == nil)
    }
  }
}

@Suite("GET /v1/changes", .forEachHub)
struct ChangesTests {
  private func filled(
    _ body: (TestClient, UUID) async throws -> Void
  ) async throws {
    try await withHub { configuration in
      configuration.limits.pullBytes = 1_024
    } _: { hub in
      let alice = try TestClient(hub)
      let epoch = try await alice.session().epoch
      try await alice.register()
      let mutations = (1...10).map { WireMutation.put("r\($0)", "\($0)") }
      _ = try await alice.push(mutations, epoch: epoch)
      try await body(alice, epoch)
    }
  }

  private func page(_ answer: RawAnswer) throws -> ChangesPage {
    #expect(answer.status == 200)
    return try answer.message(ChangesPage.self)
  }

  @Test("gives what is newest, ascending, page by page, and says when all was sent")
  func pages() async throws {
    try await filled { alice, epoch in
      _ = try await alice.push([.put("r2", "new"), .delete("r3")], epoch: epoch)
      var records: [WireRecord] = []
      var after: UInt64 = 0
      var more = true
      while more {
        let page = try page(try await alice.pull(after: after, epoch: epoch, "&limit=4"))
        #expect(page.after == after)
        #expect(page.highWater == 12)
        #expect(page.records.count <= 4)
        records += page.records
        after = page.next
        more = page.more
      }
      #expect(after == 12)
      #expect(records.map(\.version) == [1, 4, 5, 6, 7, 8, 9, 10, 11, 12])
      #expect(records.map(\.id.text).suffix(2) == ["r2", "r3"])
      #expect(records.last?.deleted == true)
      #expect(records.last?.payload == nil)
      #expect(records.dropLast().last?.payload == Data("new".utf8))
      #expect(records.last?.client == alice.client)
      #expect(records.last?.mutation != nil)
    }
  }

  @Test("is the same page in both forms, whatever its bounds")
  func forms() async throws {
    try await filled { alice, epoch in
      _ = try await alice.push([.put("r2", "new"), .delete("r3"), .put("é", "")], epoch: epoch)
      for rest in [
        "&limit=500", "&limit=3", "&limit=1", "&limit=500&until=10", "&limit=4&until=13",
        "&limit=500&until=99",
      ] {
        for after in [0, 5, 12, 13] as [UInt64] where !rest.contains("until=10") || after < 10 {
          let json = try await alice.pull(after: after, epoch: epoch, rest)
          let cbor = try await alice.pull(
            after: after, epoch: epoch, rest, ["Accept": "application/cbor"])
          #expect(cbor.header("Content-Type") == "application/cbor")
          #expect(json.status == 200)
          #expect(try cbor.message(ChangesPage.self, as: .cbor) == page(json))
        }
      }
    }
  }

  @Test("leaves out what changed beyond until, which comes with the pull from there")
  func until() async throws {
    try await filled { alice, epoch in
      _ = try await alice.push([.put("r2", "new")], epoch: epoch)
      let page = try page(try await alice.pull(epoch: epoch, "&limit=500&until=10"))
      #expect(page.records.map(\.version) == [1, 3, 4, 5, 6, 7, 8, 9, 10])
      #expect(!page.more)
      #expect(page.next == 10)
      let rest = try self.page(try await alice.pull(after: 10, epoch: epoch))
      #expect(rest.records.map(\.id.text) == ["r2"])
      // Above the high water it is legal, and next stays at the high water.
      let beyond = try self.page(try await alice.pull(epoch: epoch, "&limit=500&until=99"))
      #expect(beyond.next == 11)
      let empty = try self.page(try await alice.pull(after: 11, epoch: epoch))
      #expect(empty.records == [] && empty.next == 11 && !empty.more)
    }
  }

  @Test("ends a page at pullBytes of payload and ID, and sends one larger record alone")
  func bytes() async throws {
    try await withHub { configuration in
      configuration.limits.pullBytes = 1_024
    } _: { hub in
      let alice = try TestClient(hub)
      let epoch = try await alice.session().epoch
      try await alice.register()
      // 512 bytes each with the ID of one byte: two fit exactly.
      let half = String(repeating: "x", count: 511)
      let large = String(repeating: "x", count: 2_000)
      let mutations: [WireMutation] = [
        .put("a", half), .put("b", half), .put("c", ""), .put("d", large), .put("e", ""),
      ]
      _ = try await alice.push(mutations, epoch: epoch)
      var after: UInt64 = 0
      var pages: [[String]] = []
      repeat {
        let page = try page(try await alice.pull(after: after, epoch: epoch))
        pages.append(page.records.map(\.id.text))
        after = page.next
        #expect(page.more == (after < 5))
      } while after < 5
      #expect(pages == [["a", "b"], ["c"], ["d"], ["e"]])
    }
  }

  @Test(
    "refuses parameters that are missing, ill-typed or out of range",
    arguments: [
      ("epoch=E&limit=1", "bad_cursor"), ("after=&epoch=E&limit=1", "bad_cursor"),
      ("after=-1&epoch=E&limit=1", "bad_cursor"),
      ("after=9007199254740992&epoch=E&limit=1", "bad_cursor"),
      ("after=5&until=4&epoch=E&limit=1", "bad_cursor"),
      ("after=5&until=x&epoch=E&limit=1", "bad_cursor"),
      ("after=0&limit=1", "bad_request"), ("after=0&epoch=x&limit=1", "bad_request"),
      ("after=0&epoch=E", "bad_request"), ("after=0&epoch=E&limit=0", "bad_request"),
      ("after=0&epoch=E&limit=501", "bad_request"),
      ("after=0&epoch=E&limit=1&wait=56", "bad_request"),
      ("after=0&epoch=E&limit=1&wait=x", "bad_request"),
      ("after=0&after=0&epoch=E&limit=1", "bad_request"),
      ("after=0&epoch=E&limit=1&x=%zz", "bad_request"),
    ])
  func forms(query: String, code: String) async throws {
    try await filled { alice, epoch in
      let query = query.replacing("E", with: epoch.wireText)
      let answer = try await alice.send("GET", "/v1/changes?\(query)")
      #expect(answer.code == code)
    }
  }

  @Test("lowers a limit above pullRecords, and answers a wait at once where there is something")
  func lowered() async throws {
    try await withHub { configuration in
      configuration.limits.pullRecords = 3
      configuration.limits.waitSeconds = 5
    } _: { hub in
      let alice = try TestClient(hub)
      let session = try await alice.session()
      #expect(session.limits.pullRecords == 3)
      #expect(session.limits.waitSeconds == 5)
      let epoch = session.epoch
      try await alice.register()
      _ = try await alice.push((1...5).map { .put("r\($0)") }, epoch: epoch)
      let first = try page(try await alice.pull(epoch: epoch, "&limit=500&wait=55"))
      #expect(first.records.count == 3)
      let end = try page(
        try await alice.pull(after: 5, epoch: epoch, "&limit=500&wait=55&until=9"))
      #expect(end.records.isEmpty, "a wait counts only without until")
    }
  }

  @Test("after the high water begins a new epoch that forks there, at most once a minute")
  func fork() async throws {
    try await filled { alice, epoch in
      let answer = try await alice.pull(after: 11, epoch: epoch)
      #expect(answer.status == 409)
      let problem = try HubProblem(decoding: answer.body)
      #expect(problem.code == "epoch_changed")
      #expect(problem.lineage == [LineageEntry(epoch: epoch, forkedAt: 10)])
      let new = try #require(problem.epoch)
      #expect(answer.header("Holdfast-Epoch") == new.wireText)
      #expect(try await alice.session().epoch == new)
      // The old epoch is gone for good.
      #expect(try await alice.pull(after: 0, epoch: epoch).code == "epoch_changed")
      let again = try await alice.pull(after: 11, epoch: new)
      #expect(again.status == 503)
      #expect(again.header("Retry-After").flatMap { Int($0) } ?? 0 > 0)
      #expect(try await alice.session().epoch == new)
      #expect(try page(try await alice.pull(after: 10, epoch: new)).records.isEmpty)
    }
  }

  @Test("below the minimum cursor is cursor_expired, unless until is not")
  func expired() async throws {
    try await filled { alice, epoch in
      _ = try await alice.push([.delete("r1"), .delete("r2")], epoch: epoch)
      try await alice.hub.purgeTombstones(of: alice.account, below: 12)
      let answer = try await alice.pull(after: 11, epoch: epoch)
      #expect(answer.status == 410)
      let problem = try HubProblem(decoding: answer.body)
      #expect(problem.code == "cursor_expired")
      #expect(problem.minimumCursor == 12)
      #expect(try await alice.pull(epoch: epoch, "&limit=500&until=11").status == 410)
      let scan = try page(try await alice.pull(epoch: epoch, "&limit=500&until=12"))
      // The tombstone below the minimum is purged, the one at it is not.
      #expect(scan.records.filter(\.deleted).map(\.id.text) == ["r2"])
      #expect(try page(try await alice.pull(after: 12, epoch: epoch)).records.isEmpty)
    }
  }
}

@Suite("GET /v1/records", .forEachHub)
struct RecordsTests {
  @Test("gives the newest version, a tombstone, or null", arguments: WireFormat.allCases)
  func newest(format: WireFormat) async throws {
    try await withHub { hub in
      let alice = try TestClient(hub)
      let epoch = try await alice.session().epoch
      try await alice.register()
      _ = try await alice.push([.put("a", "1"), .put("a", "2"), .delete("b")], epoch: epoch)
      func record(_ id: String) async throws -> WireRecord? {
        let id = PercentEncoding.encode(bytes: id.utf8)
        return try await alice.send("GET", "/v1/records?id=\(id)", ["Accept": format.rawValue])
          .message(RecordAnswer.self, as: format).record
      }
      let live = try await record("a")
      #expect(live?.version == 2)
      #expect(live?.payload == Data("2".utf8))
      let dead = try await record("b")
      #expect(dead?.deleted == true && dead?.payload == nil && dead?.version == 3)
      #expect(try await record("c") == nil)
    }
  }

  @Test("refuses a missing ID, and IDs of 0 and 401 bytes")
  func forms() async throws {
    try await withHub { hub in
      let alice = try TestClient(hub)
      let long = String(repeating: "a", count: 401)
      for query in ["", "?id=", "?id", "?id=\(long)", "?id=a&id=a", "?id=%FF"] {
        #expect(try await alice.send("GET", "/v1/records\(query)").code == "bad_request")
      }
      let longest = String(long.dropLast())
      #expect(try await alice.send("GET", "/v1/records?id=\(longest)").status == 200)
    }
  }
}

import Foundation
import HubProtocol
import ProfileStore
import Testing

extension AreasAndRegistry {
  @Suite("copying records from one account's profile into another's")
  struct CopyingRecords {
    let store: TemporaryStore
    let registry: ProfileRegistry
    let ada: VerifiedAccount
    let bob: VerifiedAccount
    let adas: Profile
    let bobs: Profile
    let adasSession = AppSession()

    init() async throws {
      store = try TemporaryStore()
      registry = try store.registry()
      ada = try verified("ada")
      bob = try verified("bob")
      adasSession.signIn(ada, token: "token")
      adas = try await registry.profile(for: ada, session: adasSession)
      bobs = try await registry.profile(for: bob)
      store.signIn(bob)
      for name in ["a", "b", "c"] {
        try await adas.enqueue(.put(RecordID(name), Data("adas \(name)".utf8)), account: ada)
      }
      try await adas.pull("pulled", version: 7, "from the hub")
      try await adas.pull("gone", version: 8, nil)
    }

    private func copy(_ selection: RecordSelection = .all) async throws -> CopyReceipt {
      try await bobs.copyRecords(
        from: adas, sourceAccount: ada, account: bob, selecting: selection)
    }

    @Test(
      "makes changes of the other account with UUIDs of their own, and leaves the first as it was")
    func copies() async throws {
      let before = try adas.dump()
      let receipt = try await copy()
      #expect(try adas.dump() == before)
      #expect(receipt.records == 4)
      #expect(receipt.parked == 0)
      #expect(receipt.unchanged == 0)
      #expect(receipt.source == adas.id)
      #expect(receipt.sourceAccount == ada)
      #expect(receipt.copiedAt == store.clock.now)
      #expect(try bobs.copyReceipts() == [receipt])
      let entries = try bobs.outbox()
      #expect(entries.map(\.record) == ["a", "b", "c", "pulled"])
      #expect(entries.allSatisfy { $0.base == .mustNotExist && $0.account == bob })
      #expect(Set(entries.map(\.mutation)).isDisjoint(with: try adas.outbox().map(\.mutation)))
      #expect(try bobs.text("a") == "adas a")
      #expect(try bobs.text("pulled") == "from the hub")
      #expect(try bobs.sendable().count == 4)
      #expect(try adas.owner == ada)
      #expect(try bobs.owner == bob)
      #expect(try bobs.area.violations() == [])
    }

    @Test("a second time copies only what is new")
    func again() async throws {
      _ = try await copy()
      let none = try await copy()
      #expect(none.records == 0)
      #expect(none.unchanged == 4)
      try await adas.enqueue(.put("d", Data("adas d".utf8)), account: ada)
      let one = try await copy()
      #expect(one.records == 1)
      #expect(try bobs.outbox().map(\.record) == ["a", "b", "c", "pulled", "d"])
      // One with nothing in it leaves no receipt.
      #expect(try bobs.copyReceipts().map(\.records) == [4, 1])
    }

    @Test("never overwrites what the other account has, waiting here or at the hub")
    func neverOver() async throws {
      try await bobs.enqueue(.put("a", Data("bobs a".utf8)), account: bob)
      try await bobs.pull("b", version: 3, "bobs b")
      let receipt = try await copy()
      #expect(receipt.records == 4)
      #expect(receipt.parked == 1)
      #expect(try bobs.text("a") == "bobs a")
      #expect(try bobs.text("b") == "bobs b")
      let entries = try bobs.outbox()
      #expect(entries.filter { $0.record == "a" }.map { $0.parked?.reason } == [nil, .adopted])
      #expect(entries.filter { $0.record == "b" }.map(\.base) == [.mustNotExist])
      // Made again from its start, as after one that was cut off: nothing waits twice.
      #expect(try await copy().unchanged == 4)
      #expect(try bobs.outbox() == entries)
      #expect(try bobs.area.violations() == [])
    }

    @Test("copies those with a prefix, if it is told so")
    func prefix() async throws {
      #expect(try await copy(.prefix("pul")).records == 1)
      #expect(try bobs.outbox().map(\.record) == ["pulled"])
    }

    @Test("names both accounts and compares them with owner and session on both sides")
    func checks() async throws {
      let cleo = try verified("cleo")
      let before = try bobs.dump()
      func refusal(
        _ target: Profile, from source: Profile, _ sourceAccount: VerifiedAccount,
        _ account: VerifiedAccount
      ) async -> StoreError.Code? {
        await code {
          _ = try await target.copyRecords(
            from: source, sourceAccount: sourceAccount, account: account)
        }
      }
      #expect(await refusal(bobs, from: adas, cleo, bob) == .ownedByAnotherAccount)
      #expect(await refusal(bobs, from: adas, ada, cleo) == .ownedByAnotherAccount)
      #expect(await refusal(bobs, from: bobs, bob, bob) == .ownedByAnotherAccount)
      adasSession.signOut()
      #expect(await refusal(bobs, from: adas, ada, bob) == .notSignedIn)
      adasSession.signIn(ada, token: "token")
      store.signIn(cleo)
      #expect(await refusal(bobs, from: adas, ada, bob) == .anotherAccountSignedIn)
      store.session.signOut()
      #expect(await refusal(bobs, from: adas, ada, bob) == .notSignedIn)
      let guest = try await registry.unownedProfile()
      #expect(await refusal(guest, from: adas, ada, bob) == .notBound)
      #expect(await refusal(bobs, from: guest, ada, bob) == .notBound)
      store.signIn(bob)
      #expect(try bobs.dump() == before)
      #expect(try bobs.copyReceipts() == [])
    }

    @Test("is whole or nothing: a full outbox takes none of it")
    func whole() async throws {
      let small = try TemporaryStore()
      var limits = StoreLimits()
      limits.outboxCountMax = 3
      let tight = try small.registry(limits: limits)
      let (bob, bobs) = try await small.signedInProfile("bob", in: tight)
      let before = try bobs.dump()
      #expect(
        await code {
          _ = try await bobs.copyRecords(from: adas, sourceAccount: ada, account: bob)
        } == .outboxFull)
      var after = try bobs.dump()
      // The table of receipts is made before.
      #expect(after.removeValue(forKey: "copies") == [:])
      #expect(after == before)
    }

    @Test("an app that keeps its records itself is told so")
    func appKeeps() async throws {
      let other = try TemporaryStore()
      let registry = try other.registry(keeping: .app)
      let (bob, bobs) = try await other.signedInProfile("bob", in: registry)
      #expect(
        await code {
          _ = try await bobs.copyRecords(from: adas, sourceAccount: ada, account: bob)
        } == .recordKeepingDiffers)
    }

    // MARK: Export and import

    private func exported(_ selection: RecordSelection = .all) throws -> Data {
      var bytes = Data()
      try adas.exportRecords(account: ada, selecting: selection) { bytes += $0 }
      return bytes
    }

    private func imported(
      _ bytes: Data, cutAt size: Int = 7, sourceAccount: VerifiedAccount? = nil
    ) async throws -> CopyReceipt {
      let chunks = AsyncStream<Data> { continuation in
        for start in stride(from: 0, to: bytes.count, by: size) {
          continuation.yield(bytes[start..<min(bytes.count, start + size)])
        }
        continuation.finish()
      }
      return try await bobs.importRecords(
        from: chunks, sourceAccount: sourceAccount ?? ada, account: bob)
    }

    @Test("an export is lines of JSON, and an import of it is a copy")
    func exportAndImport() async throws {
      // Whatever bytes a payload has, and an ID that JSON has to escape.
      try await adas.enqueue(
        .put("line\n\"quote\" e\u{301}", Data((0...255).map { UInt8($0) })), account: ada)
      let before = try adas.dump()
      let bytes = try exported()
      #expect(try adas.dump() == before)
      let lines = bytes.split(separator: UInt8(ascii: "\n"))
      #expect(lines.count == 7)
      let head = try #require(
        try JSONSerialization.jsonObject(with: lines[0]) as? [String: Any])
      #expect(head["account"] as? String == "ada")
      #expect(head["hub"] as? String == ada.hub.uuidString)
      #expect(head["profile"] as? String == adas.id.description)
      for size in [1, 7, bytes.count] {
        let receipt = try await imported(bytes, cutAt: size)
        #expect(receipt.records == (size == 1 ? 5 : 0))
        #expect(receipt.unchanged == (size == 1 ? 0 : 5))
      }
      #expect(try bobs.records().map(\.id) == adas.records().map(\.id))
      #expect(try bobs.records().map(\.payload) == adas.records().map(\.payload))
      let receipts = try bobs.copyReceipts()
      #expect(receipts.map(\.source) == [adas.id])
      #expect(receipts.map(\.sourceAccount) == [ada])
      #expect(try bobs.area.violations() == [])
    }

    @Test("many records go in in several transactions, with one receipt")
    func many() async throws {
      try await adas.enqueue(
        (0..<1_200).map { .put(RecordID("many \($0)"), Data("\($0)".utf8)) }, account: ada)
      let receipt = try await imported(try exported(.prefix("many")), cutAt: 4_096)
      #expect(receipt.records == 1_200)
      #expect(try bobs.copyReceipts() == [receipt])
      #expect(try bobs.records().count == 1_200)
    }

    @Test("an export that is cut off, changed or another account's is refused")
    func refused() async throws {
      let bytes = try exported()
      let text = String(decoding: bytes, as: UTF8.self)
      for length in [0, 1, bytes.count / 2, bytes.count - 1] {
        #expect(await code { _ = try await imported(bytes.prefix(length)) } == .undecodable)
      }
      #expect(
        await code { _ = try await imported(bytes, sourceAccount: bob) } == .undecodable)
      let changed = [
        text.replacingOccurrences(of: "\"records\":4", with: "\"records\":3"),
        text.replacingOccurrences(of: "\"payload\":\"", with: "\"payload\":\"*"),
        text.replacingOccurrences(of: "\"holdfast\":\"records\"", with: "\"holdfast\":\"notes\""),
        text + "{}\n", "{}\n", "no JSON\n", "\n" + text,
      ]
      for text in changed {
        #expect(
          await code { _ = try await imported(Data(text.utf8)) } == .undecodable, "\(text)")
      }
      let newer = text.replacingOccurrences(of: "\"version\":1", with: "\"version\":2")
      #expect(await code { _ = try await imported(Data(newer.utf8)) } == .newerFormat)
      #expect(try bobs.copyReceipts() == [])
      // What went in before the fault was found stays, and the whole export completes it.
      _ = try await imported(bytes)
      #expect(try bobs.records().count == 4)
    }

    @Test("an account whose ID is written with other bytes is another one")
    func otherBytes() async throws {
      let composed = try verified("\u{E9}")
      let decomposed = try verified("e\u{301}")
      let session = AppSession()
      session.signIn(composed, token: "token")
      let profile = try await registry.profile(for: composed, session: session)
      var bytes = Data()
      try profile.exportRecords(account: composed) { bytes += $0 }
      #expect(
        await code { _ = try await imported(bytes, sourceAccount: decomposed) } == .undecodable)
      #expect(try await imported(bytes, sourceAccount: composed).records == 0)
    }

    @Test("a line without an end is not kept in memory for ever")
    func longLine() async throws {
      let chunks = AsyncStream<Data> { continuation in
        for _ in 0..<30 { continuation.yield(Data(repeating: 65, count: 1 << 20)) }
        continuation.finish()
      }
      #expect(
        await code {
          _ = try await bobs.importRecords(from: chunks, sourceAccount: ada, account: bob)
        } == .undecodable)
    }

    @Test("an export ends where its writer throws, and needs the session")
    func exportStops() async throws {
      struct Full: Error {}
      #expect(throws: Full.self) { try adas.exportRecords(account: ada) { _ in throw Full() } }
      #expect(
        await code { try adas.exportRecords(account: bob) { _ in } } == .ownedByAnotherAccount)
      adasSession.signOut()
      #expect(await code { try adas.exportRecords(account: ada) { _ in } } == .notSignedIn)
    }
  }
}

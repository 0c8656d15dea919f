import Foundation
import HubProtocol
import ProfileStore
import Testing

@Suite("profilectl outbox")
struct OutboxTests {
  private static let first = TestStore.uuid("aaaaaaaa-0000-4000-8000-000000000001")
  private static let second = TestStore.uuid("aaaaaaaa-0000-4000-8000-000000000002")
  private static let third = TestStore.uuid("aaaaaaaa-0000-4000-8000-000000000003")
  private static let fourth = TestStore.uuid("aaaaaaaa-0000-4000-8000-000000000004")

  /// One change that was sent, one in conflict, one behind that, and a deletion.
  private func filled() async throws -> (store: TestStore, profile: Profile) {
    let store = try TestStore()
    return (store, try await Self.fill(store))
  }

  static func fill(_ store: TestStore) async throws -> Profile {
    let alice = try TestStore.account("alice@example.org")
    let profile = try await store.profile(of: alice)
    try await profile.enqueue(
      [
        .put("country/DE", Data(#"{"name":"Deutschland"}"#.utf8), mutation: first),
        .put("country/FR", Data([0xFF, 0x00]), base: .version(9), mutation: second),
        .put("country/FR", Data("{}".utf8), base: .version(9), mutation: third),
        .delete("country/\u{1B}[2J", base: .mustNotExist, mutation: fourth),
      ], account: alice)
    try await profile.area.markFirstSent([1], highWater: 30)
    let current = HubVersion(
      version: 12, isDeleted: false, payload: Data("theirs".utf8), isPayloadOmitted: false)
    try await store.settle(
      [(second, .parked(Parked(reason: .conflict, current: current)))], of: profile)
    return profile
  }

  @Test("lists what waits in the order of sending, with its state")
  func text() async throws {
    let (store, profile) = try await filled()
    let run = try await store.copied().run(["outbox", "\(profile.id)"])
    #expect(run.exitCode == 0)
    #expect(
      run.output == """
        ORDER  CHANGE                                KIND    RECORD             BASE                SIZE  ENQUEUED              STATE
            1  aaaaaaaa-0000-4000-8000-000000000001  put     country/DE         -               22 bytes  2026-01-02T02:50:45Z  sent
            2  aaaaaaaa-0000-4000-8000-000000000002  put     country/FR         9                2 bytes  2026-01-02T02:50:45Z  parked: conflict
            3  aaaaaaaa-0000-4000-8000-000000000003  put     country/FR         after aaaaaaaa   2 bytes  2026-01-02T02:50:45Z  waiting
            4  aaaaaaaa-0000-4000-8000-000000000004  delete  country/\\u{1B}[2J  new                    -  2026-01-02T02:50:45Z  pending

        """)
  }

  @Test("says what is held, how often it was tried and when it is tried again")
  func held() async throws {
    let (store, profile) = try await filled()
    #expect(
      try await profile.area.hold(Self.first, at: 1, now: Date(timeIntervalSince1970: 0), chance: 0)
    )
    let copy = try store.copied()
    let text = await copy.run(["outbox", "\(profile.id)"])
    #expect(text.output.contains("held, tries: 1"))
    let json = await copy.run(["outbox", "\(profile.id)", "--json"])
    let entries = try #require(try json.json()["entries"] as? [[String: Any]])
    #expect(entries.first?["state"] as? String == "held")
    let held = try #require(entries.first?["held"] as? [String: Any])
    #expect(held["attempts"] as? Int == 1 && held["nextTry"] as? String == "1970-01-01T00:00:30Z")
  }

  @Test("fits the terminal, with payloads only where they are asked for")
  func terminal() async throws {
    let (store, profile) = try await filled()
    let run = try await store.copied().run(
      ["outbox", "\(profile.id)", "--payload"], terminalOf: 72)
    #expect(
      run.output == """
        ORDER  KIND    RECORD           SIZE  ENQUEUED              STATE
            1  put     country/DE   22 bytes  2026-01-02T02:50:45Z  sent
            payload: {"name":"Deutschland"}
            2  put     country/FR    2 bytes  2026-01-02T02:50:45Z  parked: con…
            payload, base64: /wA=
            at the hub: theirs
            3  put     country/FR    2 bytes  2026-01-02T02:50:45Z  waiting
            payload: {}
            4  delete  country/\\u…         -  2026-01-02T02:50:45Z  pending

        """)
  }

  @Test("prints every documented member as JSON")
  func json() async throws {
    let (store, profile) = try await filled()
    let copy = try store.copied()
    let run = await copy.run(["outbox", "\(profile.id)", "--json", "--payload", "--limit", "2"])
    #expect(run.exitCode == 0)
    #expect(
      run.output == """
        {
          "entries" : [
            {
              "account" : {
                "account" : null,
                "accountShort" : "alic…#0950a337",
                "hub" : "11111111-1111-4111-8111-111111111111"
              },
              "base" : null,
              "enqueuedAt" : "2026-01-02T02:50:45Z",
              "firstSent" : 30,
              "held" : null,
              "isCallerGiven" : true,
              "kind" : "put",
              "mutation" : "aaaaaaaa-0000-4000-8000-000000000001",
              "order" : 1,
              "parked" : null,
              "payload" : "eyJuYW1lIjoiRGV1dHNjaGxhbmQifQ==",
              "payloadBytes" : 22,
              "record" : "country/DE",
              "state" : "sent"
            },
            {
              "account" : {
                "account" : null,
                "accountShort" : "alic…#0950a337",
                "hub" : "11111111-1111-4111-8111-111111111111"
              },
              "base" : {
                "kind" : "version",
                "mutation" : null,
                "version" : 9
              },
              "enqueuedAt" : "2026-01-02T02:50:45Z",
              "firstSent" : null,
              "held" : null,
              "isCallerGiven" : true,
              "kind" : "put",
              "mutation" : "aaaaaaaa-0000-4000-8000-000000000002",
              "order" : 2,
              "parked" : {
                "code" : null,
                "current" : {
                  "isDeleted" : false,
                  "isPayloadOmitted" : false,
                  "payload" : "dGhlaXJz",
                  "version" : 12
                },
                "reason" : "conflict"
              },
              "payload" : "/wA=",
              "payloadBytes" : 2,
              "record" : "country/FR",
              "state" : "parked"
            }
          ],
          "isTruncated" : true,
          "profile" : "\(profile.id)",
          "state" : "owned"
        }

        """)
  }

  @Test("shows the first of many, and that there are more", arguments: [1, 3, 4, 5])
  func limit(count: Int) async throws {
    let (store, profile) = try await filled()
    let copy = try store.copied()
    let words = ["outbox", "\(profile.id)", "--limit", "\(count)"]
    let json = try await copy.run(words + ["--json"]).json()
    let entries = try #require(json["entries"] as? [[String: Any]])
    #expect(entries.compactMap { $0["order"] as? Int } == Array(1...min(4, count)))
    #expect(json["isTruncated"] as? Bool == (count < 4))
    let text = await copy.run(words)
    #expect(text.output.contains("There are more: raise --limit to see them.") == (count < 4))
  }

  @Test("says when nothing waits, and when what waits is not sent from here")
  func notes() async throws {
    let store = try TestStore()
    store.session.signOut()
    let guest = try await store.registry.unownedProfile()
    try await guest.enqueue(.put("guest", Data("{}".utf8)), account: nil)
    let alice = try TestStore.account("alice@example.org")
    let profile = try await store.profile(of: alice)
    let before = try store.copied()
    let empty = await before.run(["outbox", "\(profile.id)"])
    #expect(empty.output == "Nothing is waiting.\n")

    _ = try await store.registry.adopt(guest.id, by: alice)
    let after = try store.copied()
    let moved = await after.run(["outbox", "\(guest.id)"])
    #expect(moved.exitCode == 0)
    #expect(
      moved.output.hasSuffix(
        "The profile was adopted: its adopter sends these, they are not sent from here.\n"))
  }
}

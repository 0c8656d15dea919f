import Foundation
import HubProtocol
import HubRules
import HubServer
import LMDB
import Testing

/// What a released hub wrote must be read by every later one: these bytes change only together with
/// the format's number.
@Suite("The store's format 1")
struct StoreFormatTests {
  private let client = UUID(uuid: (1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1))
  private let first = UUID(uuid: (2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2))
  private let second = UUID(uuid: (3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3))

  private typealias Raw = [[UInt8]: [UInt8]]

  private func rows(of table: String, in environment: Environment) throws -> Raw {
    let table = try environment.table(table, key: BytesCodec.self, value: BytesCodec.self)
    return try environment.read { transaction in
      var rows: Raw = [:]
      try transaction.scan(table) { key, value in
        rows[key.copiedBytes()] = value.copiedBytes()
        return .next
      }
      return rows
    }
  }

  private func number(_ value: UInt64) -> [UInt8] {
    withUnsafeBytes(of: value.bigEndian) { Array($0) }
  }

  private func bytes(_ uuid: UUID) -> [UInt8] { withUnsafeBytes(of: uuid.uuid) { Array($0) } }

  @Test("has these tables, keys and values")
  func snapshot() async throws {
    let directory = try TemporaryDirectory()
    let configuration = HubConfiguration.test(directory)
    var session: SessionAnswer?
    try await withHub(configuration, now: { 1_000 }) { hub in
      let alice = try TestClient(hub)
      let epoch = try await alice.session().epoch
      try await alice.register(client, name: "n")
      let push = PushRequest(
        client: client, epoch: epoch, cursor: 0,
        mutations: [.put("ab", "xyz", mutation: first), .delete("c", mutation: second)])
      let answer = try await alice.send(
        "POST", "/v1/mutations", ["Content-Type": "application/json"],
        body: push.encoded(as: .json))
      #expect(answer.status == 200)
      try await hub.beginEpoch(alice.account, forkedAt: 1)
      session = try await alice.session()
    }
    let now = try #require(session)
    let left = try #require(now.lineage.first)
    var reading = Environment.Configuration()
    reading.access = .read
    let environment = try Environment.open(
      at: configuration.dataDirectory.appending(path: "store").path, configuration: reading)
    let account = number(1)
    let meta = try rows(of: "meta", in: environment)
    #expect(meta[Array("format".utf8)] == [1])
    #expect(meta[Array("hub".utf8)] == bytes(now.hub))
    #expect(meta[Array("nextNumber".utf8)] == number(2))
    #expect(meta[Array("run".utf8)]?.count == 16)
    #expect(meta.count == 4)
    let never = number(UInt64(bitPattern: Int64.min))
    #expect(
      try rows(of: "accounts", in: environment) == [
        Array("alice".utf8): account + [0] + bytes(now.epoch) + number(2) + number(0) + number(0)
          + never + bytes(left.epoch) + number(1)
      ])
    #expect(
      try rows(of: "records", in: environment) == [
        account + Array("ab".utf8): number(1) + [0], account + Array("c".utf8): number(2) + [1],
      ])
    let makers = bytes(client)
    #expect(
      try rows(of: "changes", in: environment) == [
        account + number(1): [0] + makers + bytes(first) + [0, 2] + Array("abxyz".utf8),
        account + number(2): [1] + makers + bytes(second) + [0, 1] + Array("c".utf8),
      ])
    // The first 16 bytes of SHA-256 over 01 0002 "ab" "xyz", and over 02 0001 "c".
    #expect(
      try rows(of: "results", in: environment) == [
        account + bytes(first): number(1)
          + ContentDigest(of: .put("ab", "xyz")).bytes,
        account + bytes(second): number(2) + ContentDigest(of: .delete("c")).bytes,
      ])
    #expect(
      try rows(of: "order", in: environment) == [
        account + number(1): bytes(first) + number(1_000) + Array("ab".utf8),
        account + number(2): bytes(second) + number(1_000) + Array("c".utf8),
      ])
    #expect(
      try rows(of: "clients", in: environment) == [
        bytes(client): [0, 5] + Array("alicen".utf8)
      ])
    #expect(try rows(of: "notes", in: environment).isEmpty)
  }

  @Test("is damaged where a change is cut short, which ends no hub", arguments: [0, 1, 34])
  func cutShort(byteCount: Int) async throws {
    let directory = try TemporaryDirectory()
    let configuration = HubConfiguration.test(directory)
    try await withHub(configuration) { hub in
      let alice = try TestClient(hub)
      let epoch = try await alice.session().epoch
      try await alice.register()
      #expect(try await alice.push([.put("a"), .put("b")], epoch: epoch).status == 200)
    }
    let path = configuration.dataDirectory.appending(path: "store").path
    do {
      let environment = try Environment.open(at: path, configuration: .init())
      let changes = try environment.table("changes", key: BytesCodec.self, value: BytesCodec.self)
      try await environment.write { transaction in
        try transaction.put(
          [UInt8](repeating: 0, count: byteCount), for: number(1) + number(1), in: changes)
      }
      try environment.close()
    }
    try await withHub(configuration) { hub in
      let alice = try TestClient(hub)
      let epoch = try await alice.session().epoch
      for format in WireFormat.allCases {
        let page = try await alice.pull(epoch: epoch, "&limit=9", ["Accept": format.rawValue])
        #expect(page.code == HubCode.internal.rawValue)
      }
      await #expect(throws: HubServerError.self) {
        try await hub.purgeTombstones(of: alice.account)
      }
      #expect(try await alice.session().highWater == 2)
    }
  }

  @Test("remembers contents by the first half of their SHA-256")
  func digests() {
    #expect(
      hexadecimal(ContentDigest(of: .put("ab", "xyz")).bytes) == "8aee969a1a7f01b01c7d7a765a28bcb9")
    #expect(
      hexadecimal(ContentDigest(of: .delete("c")).bytes) == "17b5e72c22600f36ebb4c5f20c00d3cd")
  }

  private func hexadecimal(_ bytes: [UInt8]) -> String {
    bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }
}

import Foundation
import HubProtocol
import Testing

/// One value of every message, the same in every test.
struct Samples {
  let hub: UUID
  let epoch: UUID
  let left: UUID
  let client: UUID
  let mutation: UUID
  let account: AccountID

  init() throws {
    hub = try #require(UUID(uuidString: "00000000-0000-4000-8000-0000000000AA"))
    epoch = try #require(UUID(uuidString: "00000000-0000-4000-8000-0000000000E1"))
    left = try #require(UUID(uuidString: "00000000-0000-4000-8000-0000000000E0"))
    client = try #require(UUID(uuidString: "00000000-0000-4000-8000-0000000000C1"))
    mutation = try #require(UUID(uuidString: "00000000-0000-4000-8000-0000000000D1"))
    account = try AccountID("anna/é")
  }

  var lineage: [LineageEntry] { [LineageEntry(epoch: left, forkedAt: 41)] }

  var session: SessionAnswer {
    SessionAnswer(
      nonce: mutation, hub: hub, epoch: epoch, lineage: lineage, account: account,
      highWater: WireLimits.sequenceMax, minimumCursor: 3, idempotencyFloor: 4, empty: false,
      expiresAt: 1_900_000_000, limits: HubLimits(pullRecords: 7, waitSeconds: 0))
  }

  var clientAnswer: ClientAnswer {
    ClientAnswer(hub: hub, epoch: epoch, account: account, client: client, name: "Anna's \"box\"")
  }

  var record: WireRecord {
    WireRecord(id: "a", version: 300, deleted: false, payload: Data([1, 2, 255]))
  }

  var tombstone: WireRecord {
    WireRecord(
      id: "z\u{0}\n", version: 70_000, deleted: true, payload: nil, client: client,
      mutation: mutation)
  }

  var page: ChangesPage {
    ChangesPage(
      hub: hub, epoch: epoch, account: account, after: 24, next: 70_000, more: true,
      highWater: 1 << 40, records: [record, tombstone])
  }

  var recordAnswer: RecordAnswer {
    RecordAnswer(hub: hub, epoch: epoch, account: account, record: record)
  }

  var push: PushRequest {
    PushRequest(
      client: client, epoch: epoch, cursor: 23,
      mutations: [
        put(payload: Data("hello".utf8), base: nil),
        put(payload: Data(), base: .version(0)),
        put(payload: Data([0]), base: .mutation(left)),
        WireMutation(
          mutation: hub, order: 4, kind: .delete, id: "ä", base: .version(255), firstSent: 0,
          payload: nil),
      ])
  }

  func put(payload: Data?, base: WireBase?) -> WireMutation {
    WireMutation(
      mutation: mutation, order: 1, kind: .put, id: "a", base: base, firstSent: 22,
      payload: payload)
  }

  var pushAnswer: PushAnswer {
    PushAnswer(
      hub: hub, epoch: epoch, account: account, highWater: 9,
      results: [
        MutationResult(mutation: mutation, status: .applied, version: 9),
        MutationResult(mutation: mutation, status: .duplicate, version: 2),
        MutationResult(mutation: mutation, status: .conflict, current: record),
        MutationResult(mutation: mutation, status: .conflict),
        MutationResult(
          mutation: mutation, status: .rejected, code: HubCode.mutationReused.rawValue,
          detail: "used before", current: omitted),
        MutationResult(
          mutation: mutation, status: .deferred, code: "of a later version", current: tombstone),
      ])
  }

  /// A record whose payload a full answer left out.
  var omitted: WireRecord {
    WireRecord(id: "b", version: 5, deleted: false, payload: nil, isPayloadOmitted: true)
  }

  var problem: HubProblem {
    HubProblem(
      title: "Epoch changed", status: 409, detail: "the history was reset",
      code: HubCode.epochChanged.rawValue, epoch: epoch, lineage: lineage, minimumCursor: 0,
      index: 2)
  }
}

/// Reads a body and gives back the error that this throws.
func wireError<Message: HubMessage>(
  _ type: Message.Type, _ body: Data, _ format: WireFormat,
  sourceLocation: SourceLocation = #_sourceLocation
) throws -> WireError {
  let thrown = #expect(throws: WireError.self, sourceLocation: sourceLocation) {
    _ = try Message(decoding: body, as: format)
  }
  return try #require(thrown, sourceLocation: sourceLocation)
}

/// Reads JSON text and gives back the error that this throws.
func wireError<Message: HubMessage>(
  _ type: Message.Type, json: String, sourceLocation: SourceLocation = #_sourceLocation
) throws -> WireError {
  try wireError(type, Data(json.utf8), .json, sourceLocation: sourceLocation)
}

/// The text of a message in JSON, for tests that change a part of it.
func json(_ message: some HubMessage) -> String {
  String(decoding: message.encoded(as: .json), as: UTF8.self)
}

/// Bytes written as hexadecimal digits; white space between them does not count.
func hex(_ text: String) throws -> Data {
  let digits = Array(text.utf8.filter { $0 > 0x20 })
  var data = Data()
  for position in stride(from: 0, to: digits.count, by: 2) {
    let pair = String(decoding: digits[position..<position + 2], as: UTF8.self)
    data.append(try #require(UInt8(pair, radix: 16)))
  }
  return data
}

extension Data {
  /// The bytes as hexadecimal digits.
  var hexText: String {
    map { byte in String(byte >> 4, radix: 16) + String(byte & 15, radix: 16) }.joined()
  }
}

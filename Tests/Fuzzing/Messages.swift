import Foundation
import HubProtocol

/// The messages of the protocol, in both forms. What a decoder takes is written and read again as the
/// same value; and the decoders that only find the places take just what the others take.
private struct Messages {
  let format: WireFormat

  func take(_ bytes: [UInt8]) {
    let body = Data(bytes)
    again(SessionAnswer.self, body)
    again(ClientRegistration.self, body)
    again(ClientAnswer.self, body)
    again(RecordAnswer.self, body)
    again(PushAnswer.self, body)
    let isPage = again(ChangesPage.self, body)
    promise(
      isPage == isTaken { _ = try ChangesOutline(decoding: body, as: format) },
      "page and outline differ: page \(isPage)")
    let isPush = again(PushRequest.self, body)
    promise(
      isPush == isTaken { _ = try PushOutline(decoding: body, as: format) },
      "push and outline differ: push \(isPush)")
  }

  private func isTaken(_ body: () throws -> Void) -> Bool {
    do {
      try body()
      return true
    } catch {
      promise(error is WireError, "an error that is none of the protocol's: \(type(of: error))")
      return false
    }
  }

  @discardableResult
  private func again<Message: HubMessage & Equatable>(_ type: Message.Type, _ body: Data) -> Bool {
    isTaken {
      let message = try Message(decoding: body, as: format)
      let written = message.encoded(as: format)
      do {
        promise(
          try Message(decoding: written, as: format) == message, "\(type) is not read as written")
      } catch {
        fatalError("\(type) is not read as it was written: \(error)")
      }
    }
  }

  var seeds: [[UInt8]] {
    get throws {
      let (hub, epoch, client) = (Self.uuid(1), Self.uuid(2), Self.uuid(3))
      let account = try AccountID("anna/é")
      let record = WireRecord(id: "a", version: 300, deleted: false, payload: Data([1, 2, 255]))
      let tombstone = WireRecord(
        id: "z\u{0}\n", version: 70_000, deleted: true, payload: nil, client: client, mutation: hub)
      let bases: [WireBase?] = [nil, .version(0), .version(255), .mutation(epoch)]
      let puts = bases.map { base in
        WireMutation(
          mutation: hub, order: 1, kind: base == .version(255) ? .delete : .put, id: "ä",
          base: base, firstSent: 22, payload: base == .version(255) ? nil : Data("hello".utf8))
      }
      let messages: [any HubMessage] = [
        SessionAnswer(
          nonce: epoch, hub: hub, epoch: epoch,
          lineage: [LineageEntry(epoch: client, forkedAt: 41)], account: account,
          highWater: WireLimits.sequenceMax, minimumCursor: 3, idempotencyFloor: 4, empty: false,
          expiresAt: 1_900_000_000, limits: HubLimits(pullRecords: 7, waitSeconds: 0)),
        ClientRegistration(name: "a"),
        ClientAnswer(hub: hub, epoch: epoch, account: account, client: client, name: "\"box\""),
        ChangesPage(
          hub: hub, epoch: epoch, account: account, after: 24, next: 70_000, more: true,
          highWater: 1 << 40, records: [record, tombstone]),
        RecordAnswer(hub: hub, epoch: epoch, account: account, record: record),
        PushRequest(client: client, epoch: epoch, cursor: 23, mutations: puts),
        PushAnswer(
          hub: hub, epoch: epoch, account: account, highWater: 9,
          results: [
            MutationResult(mutation: hub, status: .applied, version: 9),
            MutationResult(mutation: epoch, status: .duplicate, version: 2),
          ]),
      ]
      return messages.map { Array($0.encoded(as: format)) }
    }
  }

  static func uuid(_ byte: UInt8) -> UUID {
    UUID(uuid: (byte, 0, 0, 0, 0, 0, 0x40, 0, 0x80, 0, 0, 0, 0, 0, 0, byte))
  }
}

struct CBORMessages: FuzzedDecoder {
  static let name = "cbor"
  private let messages = Messages(format: .cbor)
  var seeds: [[UInt8]] { get throws { try messages.seeds } }
  func take(_ bytes: [UInt8]) { messages.take(bytes) }
}

struct JSONMessages: FuzzedDecoder {
  static let name = "json"
  private let messages = Messages(format: .json)
  var seeds: [[UInt8]] { get throws { try messages.seeds } }
  func take(_ bytes: [UInt8]) { messages.take(bytes) }
}

/// The problem that an answer with an error carries.
struct Problems: FuzzedDecoder {
  static let name = "problem"

  var seeds: [[UInt8]] {
    [
      Array(
        HubProblem(
          title: "a", status: 409, detail: "b", code: HubCode.epochChanged.rawValue
        ).encoded())
    ]
  }

  func take(_ bytes: [UInt8]) {
    guard let problem = try? HubProblem(decoding: Data(bytes)) else { return }
    promise((try? HubProblem(decoding: problem.encoded())) == problem, "not read as written")
  }
}

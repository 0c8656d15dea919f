import Foundation
import HubClient
package import HubProtocol
import HubServer
import Testing

extension TestHub {
  /// What the hub itself has of an account, in the order of the versions: asked past every device.
  package func records(of name: String) async throws -> [WireRecord] {
    let (token, account) = (try token(for: name), try AccountID(name))
    let session = try await ask(
      .session(nonce: UUID()), SessionAnswer.self, token: token, account: account)
    var found: [WireRecord] = []
    var after: UInt64 = 0
    while true {
      // A scan from zero, which needs no tombstone.
      let query = ChangesQuery(
        after: after, epoch: session.epoch, limit: 500, until: session.highWater)
      let page = try await ask(.changes(query), ChangesPage.self, token: token, account: account)
      found += page.records
      after = page.next
      if !page.more { return found }
    }
  }

  /// The last sequence that the hub has given: how many mutations it has applied.
  package func highWater(of name: String) async throws -> UInt64 {
    try await ask(
      .session(nonce: UUID()), SessionAnswer.self, token: try token(for: name),
      account: try AccountID(name)
    ).highWater
  }

  /// What it has as text by ID; what is deleted is left out.
  package func texts(of name: String) async throws -> [RecordID: String] {
    Dictionary(
      uniqueKeysWithValues: try await records(of: name).compactMap { record in
        record.payload.map { (record.id, String(decoding: $0, as: UTF8.self)) }
      })
  }

  private func ask<Message: HubMessage>(
    _ call: HubCall, _ type: Message.Type, token: String, account: AccountID
  ) async throws -> Message {
    let response = try await connection.send(
      call.request(token: token, account: account, format: .cbor))
    try #require(response.status == 200)
    return try Message(decoding: response.body, as: .cbor)
  }
}

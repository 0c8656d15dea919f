import Foundation
import HubProtocol
import ProfileStore

extension PassRunner {
  /// Requires that the session says what it said when the pass began: who, and in which sign-in.
  /// - Returns: what it says now, its token read together with it.
  @discardableResult
  func requireSession() throws(SyncError) -> SignedInAccount { try caller.requireSession() }

  /// The same as a check for another thread: within the transaction that commits a batch.
  var sessionCheck: @Sendable () throws -> Void {
    { [caller] in try caller.requireSession() }
  }

  /// Sends one call with the owner's name and returns an answer that is for use.
  /// - Throws: as `HubCaller.ask`.
  func ask(_ call: HubCall, _ kind: Expectation.Call) async throws -> HubResponse {
    try await caller.ask(call, kind, limits: hub?.limits ?? HubLimits())
  }

  /// Compares what head and body name with what is expected, before anything of it is used.
  func requireOurs(
    _ response: HubResponse, hub: UUID, account: AccountID, epoch: UUID
  ) throws {
    try caller.requireOurs(
      response, hub: hub, account: account, epoch: epoch, expecting: self.hub?.epoch)
  }

  func verify() async throws -> SessionAnswer {
    let nonce = UUID()
    let response = try await ask(.session(nonce: nonce), .session)
    let answer = try AnswerBody.read(SessionAnswer.self, from: response)
    guard answer.nonce == nonce else { throw SyncError.badAnswer("it answers another question") }
    guard answer.hub == account.hub, answer.account == account.id else {
      throw Refused(action: .stopForSecurity, detail: "in the body")
    }
    hub = answer
    meter.expect(highWater: answer.highWater)
    return answer
  }

  func register() async throws {
    let client = facts.client.id
    let response = try await ask(.registerClient(client: client, name: ""), .client)
    let answer = try AnswerBody.read(ClientAnswer.self, from: response)
    try requireOurs(
      response, hub: answer.hub, account: answer.account, epoch: answer.epoch)
    guard answer.client == client else { throw SyncError.badAnswer("it names another client") }
    try await area.noteRegistered(client)
  }
}

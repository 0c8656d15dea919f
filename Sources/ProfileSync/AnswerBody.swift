import Foundation
import HubProtocol
import ProfileStore

/// Reads bodies of answers that ``AnswerJudge`` let through.
enum AnswerBody {
  /// A body that cannot be read is used in nothing.
  /// - Throws: `badAnswer`.
  static func read<Message: HubMessage>(
    _ type: Message.Type, from response: HubResponse
  ) throws(SyncError) -> Message {
    let format = try format(of: response)
    do {
      return try Message(decoding: response.body, as: format)
    } catch {
      throw .badAnswer("\(error)")
    }
  }

  /// The same for a page of changes, which stays in its body.
  static func outline(from response: HubResponse) throws(SyncError) -> ChangesOutline {
    let format = try format(of: response)
    do {
      return try ChangesOutline(decoding: response.body, as: format)
    } catch {
      throw .badAnswer("\(error)")
    }
  }

  private static func format(of response: HubResponse) throws(SyncError) -> WireFormat {
    let header = AnswerJudge.header(HubHeader.contentType, of: response) ?? ""
    guard let format = WireFormat(contentType: header) else {
      throw .badAnswer("it is neither CBOR nor JSON")
    }
    return format
  }

  /// Whether head and body name the same hub and account: both are checked, and must agree.
  static func isConsistent(_ response: HubResponse, hub: UUID, account: AccountID) -> Bool {
    let named = AnswerJudge.header(HubHeader.hub, of: response).flatMap { UUID(wireText: $0) }
    return named == hub && AnswerJudge.namedAccount(of: response) == account
  }

  /// The epoch that the head names.
  static func namedEpoch(of response: HubResponse) -> UUID? {
    AnswerJudge.header(HubHeader.epoch, of: response).flatMap { UUID(wireText: $0) }
  }
}

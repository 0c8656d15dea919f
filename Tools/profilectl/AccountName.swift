import HubProtocol
import ProfileStore

/// An account as a person may see it.
struct AccountName: Sendable {
  private let account: VerifiedAccount
  private let isRevealed: Bool

  init(_ account: VerifiedAccount, isRevealed: Bool) {
    self.account = account
    self.isRevealed = isRevealed
  }

  /// At most four characters of the ID and at most a third of it, then the hash.
  var short: String {
    let id = account.id.text
    return "\(id.prefix(min(4, id.count / 3)))…#\(hash)"
  }

  /// The whole ID if it is revealed. The hash stays: IDs may look alike and differ in their bytes.
  var text: String {
    isRevealed ? "\(account.id.text) #\(hash)" : short
  }

  /// The text and the hub.
  var textWithHub: String { "\(text) at hub \(account.hub.wireText)" }

  var json: AccountJSON {
    AccountJSON(
      hub: account.hub.wireText, account: isRevealed ? account.id.text : nil, accountShort: short)
  }

  /// 32 bits of FNV-1a over the account's stored bytes, hub and ID.
  private var hash: String {
    let hash = account.bytes.reduce(UInt64(0xCBF2_9CE4_8422_2325)) {
      ($0 ^ UInt64($1)) &* 0x100_0000_01B3
    }
    let folded = String(UInt32(truncatingIfNeeded: hash >> 32 ^ hash), radix: 16)
    return String(repeating: "0", count: 8 - folded.count) + folded
  }
}

/// A member of the JSON that names an account.
struct AccountJSON: Encodable {
  var hub: String
  @OrNull var account: String?
  var accountShort: String
}

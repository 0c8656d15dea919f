public import Foundation
import HubProtocol
public import LMDB

/// What a store refused, with the remedy; nothing was changed by the call that threw it.
///
/// It carries no payload, record ID, account ID or token.
public struct StoreError: Error, Sendable, CustomStringConvertible {
  /// Why it was refused. Open: a later version may add codes, so a `switch` needs a `default`.
  public struct Code: Hashable, Sendable, CustomStringConvertible {
    /// The code's name as it is written in Swift.
    public let description: String
    private init(_ name: String) { description = name }

    /// The area belongs to another account: open or provision that account's own.
    public static let ownedByAnotherAccount = Code("ownedByAnotherAccount")
    /// The area has no owner yet: bind it first.
    public static let notBound = Code("notBound")
    /// The call needs the account that the change belongs to.
    public static let accountRequired = Code("accountRequired")
    /// The session was not restored yet: call `restore`, `signIn` or `signOut` on it first.
    public static let sessionUnknown = Code("sessionUnknown")
    /// Nobody is signed in: sign in first.
    public static let notSignedIn = Code("notSignedIn")
    /// The session says another account than the call.
    public static let anotherAccountSignedIn = Code("anotherAccountSignedIn")
    /// Writing an owner needs the hub's answer: verify the account online once.
    public static let proofRequired = Code("proofRequired")
    /// There is unowned data; ``StoreError/unowned`` says how much. Adopt it or set it aside.
    public static let unownedDataPresent = Code("unownedDataPresent")
    /// Somebody signed in and decided nothing about the unowned data: adopt, set aside or keep it.
    public static let adoptionUndecided = Code("adoptionUndecided")
    /// Another account has adopted, or is adopting, this unowned area.
    public static let alreadyAdopted = Code("alreadyAdopted")
    /// The app's own tables hold unowned data and the account has an area already: pass a closure
    /// that carries them over.
    public static let closureRequired = Code("closureRequired")
    /// The unowned area was adopted: use the profile that the adoption returned.
    public static let moved = Code("moved")
    /// The unowned area was set aside: ask `unownedProfile()` for the current one.
    public static let setAside = Code("setAside")
    /// The area was erased.
    public static let erased = Code("erased")
    /// Something is still pending or parked; ``StoreError/pending`` says how much.
    public static let pendingMutations = Code("pendingMutations")
    /// The outbox is at its limit: synchronize, then try again.
    public static let outboxFull = Code("outboxFull")
    /// A payload is longer than the limit.
    public static let payloadTooLarge = Code("payloadTooLarge")
    /// A record ID has 0 or more than 400 bytes.
    public static let badRecordID = Code("badRecordID")
    /// A base names no earlier mutation of the same record.
    public static let badBase = Code("badBase")
    /// The mutation UUID was used for another content.
    public static let mutationReused = Code("mutationReused")
    /// No such mutation is waiting.
    public static let unknownMutation = Code("unknownMutation")
    /// The hub's version is another one than the person has decided on: show it, and ask again.
    public static let decidedOnAnotherVersion = Code("decidedOnAnotherVersion")
    /// The mutation is not parked.
    public static let notParked = Code("notParked")
    /// No such area.
    public static let unknownArea = Code("unknownArea")
    /// There is no profile of that account in this store.
    public static let unknownAccount = Code("unknownAccount")
    /// Registry and area disagree and no intent explains it; `profilectl` explains and repairs.
    public static let registryDisagrees = Code("registryDisagrees")
    /// The store was made with another `recordKeeping`: give the one that it was made with.
    public static let recordKeepingDiffers = Code("recordKeepingDiffers")
    /// The store was written by a newer version: update the app.
    public static let newerFormat = Code("newerFormat")
    /// The store was written by a version before the first release: send what it holds with that one.
    public static let olderFormat = Code("olderFormat")
    /// The place is no store and none can be made there.
    public static let notAStore = Code("notAStore")
    /// Stored bytes are not what this version wrote.
    public static let damaged = Code("damaged")
    /// The store is suspended: call `resume()` on the registry, then try again.
    public static let suspended = Code("suspended")
    /// Something that runs in this process did not end in time: end it, then try again.
    public static let stillInUse = Code("stillInUse")
    /// A payload or record does not decode.
    public static let undecodable = Code("undecodable")
    /// LMDB or the file system refused; see ``StoreError/cause``.
    public static let storage = Code("storage")
  }

  /// Why it was refused.
  public let code: Code
  /// One sentence with the remedy.
  public let message: String
  /// With `unownedDataPresent` and `adoptionUndecided`, and with `pendingMutations` of an unowned
  /// area: how much there is.
  public let unowned: UnownedSummary?
  /// With `pendingMutations` and `outboxFull`: how much is waiting.
  public let pending: PendingSummary?
  /// What LMDB or the file system said.
  public let cause: LMDBError?

  package init(
    _ code: Code, _ message: String, unowned: UnownedSummary? = nil,
    pending: PendingSummary? = nil, cause: LMDBError? = nil
  ) {
    self.code = code
    self.message = message
    self.unowned = unowned
    self.pending = pending
    self.cause = cause
  }

  /// Whether the file, or the disk under it, is full.
  var isForWantOfRoom: Bool { cause?.code == .mapFull || cause?.code == .diskFull }

  /// The message, and what LMDB said.
  public var description: String {
    cause.map { "\(message): \($0)" } ?? message
  }
}

/// How much unowned data there is.
public struct UnownedSummary: Sendable, Hashable {
  /// The unowned area.
  public let area: AreaID
  /// Records that it holds.
  public let records: Int
  /// Mutations that wait in its outbox.
  public let mutations: Int
  /// Entries of the app's own tables in it.
  public let appEntries: Int
  /// Payload bytes in its outbox.
  public let payloadByteCount: Int

  /// Whether there is nothing at all.
  public var isEmpty: Bool { records == 0 && mutations == 0 && appEntries == 0 }
}

/// What is still waiting to be sent.
public struct PendingSummary: Sendable, Hashable {
  /// Mutations in the outbox, the parked ones and those behind them included.
  public let count: Int
  /// How many of them are parked.
  public let parked: Int
  /// Their payload bytes.
  public let payloadByteCount: Int
  /// When the oldest of them was enqueued.
  public let oldest: Date?

  /// Whether nothing is waiting.
  public var isEmpty: Bool { count == 0 }

  /// Puts the numbers together.
  package init(count: Int, parked: Int, payloadByteCount: Int, oldest: Date?) {
    self.count = count
    self.parked = parked
    self.payloadByteCount = payloadByteCount
    self.oldest = oldest
  }
}

extension StoreError {
  static let erasedArea = StoreError(.erased, "the area was erased; ask the registry for a profile")
  static let foreignArea = StoreError(
    .ownedByAnotherAccount,
    "the area is owned by another account; open that account's profile, or `profile(for:)` of the "
      + "account that is signed in")

  static let notBound = StoreError(
    .notBound, "the area has no owner yet: bind it to the account first")
  static let accountRequired = StoreError(
    .accountRequired, "the area has an owner: pass the account that the change belongs to")
  static let openForInspection = StoreError(
    .storage,
    "this process has the store open for inspection only: let its StoreInspector go first")

  static func damaged(_ what: String, cause: LMDBError? = nil) -> StoreError {
    StoreError(
      .damaged, "stored \(what) cannot be read; inspect the store with profilectl", cause: cause)
  }
}

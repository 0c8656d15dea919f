/// What ``ApplyChangesAudit`` tries on an app: everything that the contract says can happen to an
/// apply closure. (Contract sections 2, 3, 5, 6 and 8.)
public enum AuditSituation: String, Sendable, Hashable, CaseIterable {
  /// Puts and updates come, and are shown. Without it nothing else is tried.
  case ordinary
  /// The app saved a batch, the commit of the pass failed, and the same batch comes again.
  case sameBatchTwice
  /// The closure cannot go on in the middle of a batch: nothing of it may stay, and the same batch
  /// comes again.
  case throwHalfWay
  /// The task is cancelled while the closure runs.
  case cancellation
  /// The app ends after it saved a batch and before the pass committed; the batch comes again.
  case crashBeforeCommit
  /// The app ends after the pass committed: what the closure returned for is not delivered again.
  case crashAfterCommit
  /// Another person signs in while the closure runs: what the closure saves is still the first one's.
  case accountSwitch
  /// A batch of one account meets the document of another.
  case wrongDocument
  /// Two accounts of one device have records with the same IDs.
  case sameIDsInTwoAccounts
  /// A change comes for a record whose edit has waited since before the pass.
  case pendingEdit
  /// The edit was made after the batch was: `localEdit` says none, `isPending` says it.
  case editDuringClosure
  /// The edit was refused by the hub and waits for a decision.
  case parkedEdit
  /// A change comes for a record that a person has just deleted on this device.
  case pendingDelete
  /// Another device deleted a record, and later put it again.
  case tombstone
  /// A deletion comes for a record that this app never had.
  case unknownTombstone
  /// A deletion that no tombstone says: a whole scan did not bring the record.
  case inferredDeletion
  /// A replay brings again what the app has, and deletions, in several batches.
  case replay
  /// The account's history was reset: a replay takes the new epoch up, with lower versions.
  case newEpoch
  /// A version comes again that the app was given and did not keep, since an edit waited.
  case equalVersion
  /// The app's files came back from a backup.
  case restoredStore
  /// The position of a batch is saved with its rows.
  case position
  /// A batch without changes, whose position counts.
  case emptyBatch
  /// A payload of no bytes is a payload.
  case emptyPayload
  /// Two IDs that look alike and are different bytes.
  case equivalentIDs
}

extension AuditSituation {
  /// What happens, in one sentence.
  public var summary: String {
    switch self {
    case .ordinary: "puts and updates of another device come"
    case .sameBatchTwice: "the same batch comes twice"
    case .throwHalfWay: "the closure cannot go on in the middle of a batch"
    case .cancellation: "the task is cancelled while the closure runs"
    case .crashBeforeCommit: "the app ends between its own commit and that of the pass"
    case .crashAfterCommit: "the app ends after the pass has committed"
    case .accountSwitch: "another account signs in while the closure runs"
    case .wrongDocument: "a batch of one account meets the document of another"
    case .sameIDsInTwoAccounts: "two accounts have records with the same IDs"
    case .pendingEdit: "a change comes for a record whose edit waits"
    case .editDuringClosure: "a record is edited after the batch was made"
    case .parkedEdit: "a change comes for a record whose edit is parked"
    case .pendingDelete: "a change comes for a record that was deleted on this device"
    case .tombstone: "another device deletes a record and puts it again"
    case .unknownTombstone: "a deletion comes for a record that the app never had"
    case .inferredDeletion: "a deletion comes that no tombstone says"
    case .replay: "a replay brings what the app has"
    case .newEpoch: "a replay takes up a new epoch, with lower versions"
    case .equalVersion: "a version comes again that the app has passed over"
    case .restoredStore: "the app's files came back from a backup"
    case .position: "a batch has a position"
    case .emptyBatch: "a batch has no changes"
    case .emptyPayload: "a payload has no bytes"
    case .equivalentIDs: "two IDs are canonically equivalent and not the same bytes"
    }
  }

  /// The section of the contract that a finding is about.
  public var contract: String {
    switch self {
    case .accountSwitch, .wrongDocument: "2 and 5.4"
    case .sameIDsInTwoAccounts: "2 and 3"
    case .equivalentIDs: "2 and 7"
    case .emptyPayload: "7"
    case .pendingEdit, .editDuringClosure: "5.6"
    case .parkedEdit, .pendingDelete: "4 and 5.6"
    case .crashBeforeCommit, .crashAfterCommit: "5.4 and 8"
    case .position: "5.7"
    case .restoredStore, .emptyBatch: "5.7 and 6"
    case .cancellation: "5.4 and 6"
    case .inferredDeletion, .replay: "6"
    case .newEpoch: "1 and 6"
    case .equalVersion: "4 and 6"
    case .ordinary, .sameBatchTwice, .throwHalfWay, .tombstone, .unknownTombstone: "5.4"
    }
  }

  /// What to change in an app that has a finding.
  public var remedy: String {
    switch self {
    case .ordinary:
      "save every change of the batch before the closure returns: an upsert by record ID, and a "
        + "delete for `isDeleted`"
    case .sameBatchTwice:
      "write rows by record ID as an upsert; refuse no batch for having come before"
    case .throwHalfWay:
      "save the batch in one transaction, roll it back when anything in it throws, and let the error "
        + "out of the closure"
    case .cancellation:
      "when the task is cancelled, save the whole batch or throw; never return with a part of it"
    case .crashBeforeCommit:
      "decide by what is in the app's own store, not by what it remembers of this launch"
    case .crashAfterCommit:
      "commit to disk before the closure returns: the pass takes the return for saved"
    case .accountSwitch:
      "let the closure hold the store of the account that the pass was begun for; never ask inside it "
        + "who is signed in now"
    case .wrongDocument:
      "give `changes(localOwner:)` the owner that stands in the app's own document, read with it; not "
        + "the profile's, the session's or the pass's"
    case .sameIDsInTwoAccounts:
      "keep a store for each account, or the account's bytes in every key"
    case .pendingEdit, .editDuringClosure, .parkedEdit:
      "ask `batch.isPending(id)` for each change inside the saving transaction, and leave the row as "
        + "it is where it says true"
    case .pendingDelete:
      "ask `batch.isPending(id)` also for records that the store does not have: a delete may wait"
    case .tombstone:
      "remove the row where `isDeleted` is true, and take a later put of the record"
    case .unknownTombstone:
      "let the deletion of a record that is not there change nothing"
    case .inferredDeletion:
      "take a deletion that is `isInferred` like any other"
    case .replay:
      "treat a replay's batch as any other: no row goes for not being in it, and an edit that waits is "
        + "not overwritten"
    case .newEpoch:
      "take what comes also where its version is lower than the row's: versions compare only within one "
        + "epoch, and the pass has compared them"
    case .equalVersion:
      "compare no versions to leave changes out: the pass has done it, and what comes is to be taken"
    case .restoredStore:
      "save the position in the same file and transaction as the rows, give it as `appPosition:`, and "
        + "replay on `appStoreBehind`"
    case .position, .emptyBatch:
      "save `batch.position` in the transaction that saves the rows, also for a batch without changes"
    case .emptyPayload:
      "tell a deletion by `isDeleted`, or by a payload that is nil; not by its length"
    case .equivalentIDs:
      "key rows by the bytes of the ID (`RecordID`, a binary column): `String` equality is not identity"
    }
  }
}

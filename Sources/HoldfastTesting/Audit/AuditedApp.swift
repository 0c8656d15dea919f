public import Foundation
public import HubProtocol
public import ProfileStore
public import ProfileSync

/// An app as ``ApplyChangesAudit`` sees it: the closure that it gives to `synchronize`, and ways to
/// look into its own store.
///
/// Nothing has to be `Sendable`: everything runs where the audit's caller runs, on the main actor for
/// an app of the main actor.
public struct AuditedApp {
  /// Whose turn it is.
  public struct Place: Sendable {
    /// The account that a pass was begun for, as the app's closure would capture it.
    public let account: VerifiedAccount
    /// The account's profile.
    public let profile: Profile
  }

  /// The closure that the app gives to `synchronize(account:applyChanges:)`.
  public var applyChanges: (borrowing ChangeBatch, Place) async throws -> Void
  /// What the app's own store shows of an account, also of one that is not signed in now: the payload of
  /// each record that is there. Deleted ones are left out, also where the app keeps something of them.
  public var contents: (Place) async throws -> [RecordID: Data]
  /// What the app does when a person changes a record, or, with nil, deletes it: its own row, and the
  /// enqueue. Without it the audit enqueues by itself, and what an app shows of local edits is not
  /// looked at.
  public var edit: ((RecordID, Data?, Place) async throws -> Void)?
  /// The position that the app has saved with its rows, for `appPosition:`; `.start` where there is
  /// none yet. Without it positions are not looked at.
  public var position: ((Place) async throws -> BatchPosition)?
  /// Told who is signed in from now on: what the app does when the person at the device changes.
  public var accountChanged: ((Place) async throws -> Void)?
  /// Lets the app's store fail at its n-th write from now on, counted from 1, as a full disk would; nil:
  /// at none. Without it a closure fails half-way only where it asks `isPending`; one that does not ask
  /// either has ``AuditSituation/throwHalfWay`` skipped.
  public var failWrite: ((Int?, Place) async throws -> Void)?

  /// Puts the closures together; see the properties.
  public init(
    applyChanges: @escaping (borrowing ChangeBatch, Place) async throws -> Void,
    contents: @escaping (Place) async throws -> [RecordID: Data],
    edit: ((RecordID, Data?, Place) async throws -> Void)? = nil,
    position: ((Place) async throws -> BatchPosition)? = nil,
    accountChanged: ((Place) async throws -> Void)? = nil,
    failWrite: ((Int?, Place) async throws -> Void)? = nil
  ) {
    self.applyChanges = applyChanges
    self.contents = contents
    self.edit = edit
    self.position = position
    self.accountChanged = accountChanged
    self.failWrite = failWrite
  }
}

public import Foundation
public import HubProtocol
public import ProfileStore

/// Changes that the app saves in one transaction of its own store.
///
/// It is lent to the closure and cannot be kept. The changes are reached only with the owner that
/// the app's own store names, so that the check of the document's owner cannot be forgotten.
public struct ChangeBatch: ~Copyable {
  /// Save it with the rows; give it to the next pass.
  public let position: BatchPosition
  /// Part of a replay: records may come again in the version that the app has.
  public let isReplay: Bool
  private let owner: Data
  private let contents: BatchContents
  private let area: Area
  private let watcher: Watcher?

  /// What an app asks of a batch.
  package enum Question: Sendable, Hashable {
    case changes
    case isPending
  }

  /// Is told a question before it is answered, and may fail it.
  package typealias Watcher = @Sendable (Question) throws(StoreError) -> Void

  package init(
    position: BatchPosition, isReplay: Bool, owner: Data, contents: BatchContents, area: Area,
    watcher: Watcher? = nil
  ) {
    self.position = position
    self.isReplay = isReplay
    self.owner = owner
    self.contents = contents
    self.area = area
    self.watcher = watcher
  }

  /// The same batch with somebody who is told what an app asks of it: for the audit of an app's closure.
  package borrowing func watched(by watcher: @escaping Watcher) -> ChangeBatch {
    ChangeBatch(
      position: position, isReplay: isReplay, owner: owner, contents: contents, area: area,
      watcher: watcher)
  }

  /// How many changes there are; none when a replay only tells an app that it is complete again.
  public var count: Int { contents.count }

  /// The changes in place, each record at most once. They cannot be kept beyond the batch.
  ///
  /// `for change in try batch.changes(localOwner: owner).copies()` is the comfortable way; without
  /// copies it is ``LentChanges/forEach(_:)``.
  /// - Parameter localOwner: `VerifiedAccount.bytes` of the owner as the app's own store has it,
  ///   read in the transaction that saves the batch.
  /// - Throws: `ownedByAnotherAccount` when that is not the area's owner: let it out of the closure;
  ///   nothing is lost, and the pass delivers the same batch again.
  /// - Cost: nothing is copied or allocated. See contract section 5.4.
  @_lifetime(borrow self)
  public borrowing func changes(localOwner: Data) throws(StoreError) -> LentChanges {
    try watcher?(.changes)
    guard localOwner == owner else {
      throw StoreError(
        .ownedByAnotherAccount,
        "the app's store belongs to another account than this batch: open that account's own store")
    }
    return contents.changes
  }

  /// Whether an edit of the record waits, pending or parked, at this very moment: for asking within
  /// the app's own saving transaction. One that was discarded does not wait any more: the change that
  /// takes its place is in this batch.
  /// - Throws: `badRecordID`, `erased`, `storage`.
  public borrowing func isPending(_ record: RecordID) throws -> Bool {
    try Area.validate(record)
    try watcher?(.isPending)
    let edit = try area.read { try area.localEdit(of: record, $0) }
    return edit.isPending || edit.isParked
  }
}

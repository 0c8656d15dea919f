import Foundation
public import HubProtocol
import HubRules

extension HubServer {
  /// Answers an account's requests with `account_disabled` until ``enable(_:)``.
  /// - Throws: ``HubServerError`` `accountUnknown`, `storeUnusable`.
  public func disable(_ account: AccountID) async throws(HubServerError) {
    try await administer(.disable, account)
  }

  /// Serves a disabled account again.
  /// - Throws: ``HubServerError`` `accountUnknown`, `storeUnusable`.
  public func enable(_ account: AccountID) async throws(HubServerError) {
    try await administer(.enable, account)
  }

  /// Removes everything of an account; it is answered `account_erased` until ``recreate(_:)``.
  ///
  /// The erasure is noted beside the data file and applied again if an older copy is put back.
  /// - Throws: ``HubServerError`` `accountUnknown`, `storeUnusable`, `directoryUnusable`.
  public func erase(_ account: AccountID) async throws(HubServerError) {
    try await administer(.erase, account)
  }

  /// Makes an erased account again: empty, with a new epoch that shares nothing with the past.
  /// - Throws: ``HubServerError`` `accountUnknown`, `accountNotErased`, `storeUnusable`,
  ///   `directoryUnusable`. Nothing was changed, then, but for the last two.
  public func recreate(_ account: AccountID) async throws(HubServerError) {
    try await administer(.recreate, account)
  }

  /// Gives an account a new epoch.
  /// - Parameter forkedAt: up to here history stays what it was; nil, or beyond it, means the high
  ///   water.
  /// - Throws: ``HubServerError`` `accountUnknown`, `storeUnusable`.
  public func beginEpoch(
    _ account: AccountID, forkedAt: UInt64? = nil
  ) async throws(HubServerError) {
    try await administer(.beginEpoch(forkedAt: forkedAt), account)
  }

  /// Removes tombstones below a sequence and raises `minimumCursor` to it.
  /// - Parameter sequence: nil, or beyond it, means the high water.
  /// - Throws: ``HubServerError`` `accountUnknown`, `storeUnusable`.
  public func purgeTombstones(
    of account: AccountID, below sequence: UInt64? = nil
  ) async throws(HubServerError) {
    try await administer(.purgeTombstones(below: sequence), account)
  }

  /// Removes stored results below a sequence and raises `idempotencyFloor` to it, however young they
  /// are: the 30 days of the protocol are the caller's to keep.
  /// - Parameter sequence: nil, or beyond it, means the high water.
  /// - Throws: ``HubServerError`` `accountUnknown`, `storeUnusable`.
  public func purgeResults(
    of account: AccountID, below sequence: UInt64? = nil
  ) async throws(HubServerError) {
    try await administer(.purgeResults(below: sequence), account)
  }

  private func administer(
    _ action: AdministrativeAction, _ account: AccountID
  ) async throws(HubServerError) {
    let state: AccountState?
    do { state = try await store.administer(action, on: account) } catch let error
      as HubServerError
    {
      throw error
    } catch {
      throw HubServerError(.storeUnusable, "the account cannot be changed", cause: error)
    }
    guard state != nil else {
      throw HubServerError(
        .accountUnknown, "the hub has never seen this account; check the ID byte for byte")
    }
  }
}

/// Something that the contract rules out, and that happened.
package struct Violation: Hashable, Sendable, Codable, CustomStringConvertible {
  /// What is checked.
  package enum Check: String, Sendable, Codable, CaseIterable {
    /// No byte of one account is in another's area, request or hub space.
    case isolation
    /// Every accepted mutation is applied, parked or still pending.
    case keeping
    /// A mutation takes effect once, in the account it was made under.
    case applyingOnce
    /// What was refused is stored nowhere and sent nowhere.
    case refusing
    /// Cursor and metadata never go back within an epoch, and no epoch comes again.
    case monotony
    /// An area's owner is its owner for ever, and an account has one area on a device.
    case ownership
    /// A device that is caught up has what the hub has.
    case catchingUp
    /// What lies in an area fits together.
    case soundness
    /// A device that has died comes up again, and its old life has ended.
    case revival
    /// An operation fails only as its documentation says.
    case failing
  }

  /// What was checked.
  package let check: Check
  /// What was found: places, numbers and IDs of the simulated world.
  package let detail: String

  /// Takes both.
  package init(_ check: Check, _ detail: String) {
    self.check = check
    self.detail = detail
  }

  /// `check: detail`.
  package var description: String { "\(check.rawValue): \(detail)" }
}

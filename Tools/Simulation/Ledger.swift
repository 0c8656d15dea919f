package import Foundation
import HubProtocol

/// What was promised about each mutation, and what became of it.
package struct Ledger: Sendable {
  /// Whose it is.
  package enum Origin: Hashable, Sendable {
    /// An account's, by its number.
    case account(Int)
    /// Of nobody, in the signed-out area with that canary.
    case guest(Canary)
  }

  /// How the device answered.
  package enum Standing: Hashable, Sendable {
    /// It was asked to store it and has not answered.
    case offered
    /// It is on disk.
    case accepted
    /// It was not stored.
    case refused
    /// The device died before it answered.
    case unknown
  }

  /// One mutation.
  package struct Entry: Hashable, Sendable {
    /// Whose it is.
    package var origin: Origin
    /// The device.
    package var device: Int
    /// How it answered.
    package var standing: Standing
    /// The record's version by it, in the history as it is now; nil: the hub does not have it.
    package var version: UInt64?
    /// The account that it was applied in.
    package var account: Int?
    /// How many calls that store it have not answered.
    package var attemptCount = 0
    /// How many calls have given it up, or may have: replaced it, retried it under another UUID, erased it.
    package var givenUpCount = 0
    /// The hub had it and lost it.
    package var isLost = false
  }

  /// By mutation.
  package private(set) var entries: [UUID: Entry] = [:]
  /// Those that are accepted, not applied and not given up, by device: few, so that a look after each
  /// step is cheap.
  private var open: [Int: Set<UUID>] = [:]

  /// An empty one.
  package init() {}

  /// The mutation is about to be enqueued.
  package mutating func offer(_ mutation: UUID, _ origin: Origin, on device: Int) {
    var entry = entries[mutation] ?? Entry(origin: origin, device: device, standing: .offered)
    if entry.standing == .refused { entry.standing = .offered }
    entry.attemptCount += 1
    entries[mutation] = entry
  }

  /// The device answered. What was accepted once stays accepted.
  package mutating func answer(_ mutation: UUID, _ standing: Standing) {
    entries[mutation]?.attemptCount -= 1
    guard let entry = entries[mutation], entry.standing != .accepted else { return }
    // Refused once, and perhaps stored by another attempt: nobody knows.
    if standing == .refused, entry.standing == .unknown || entry.attemptCount > 0 { return }
    entries[mutation]?.standing = standing
    note(mutation)
  }

  /// A call gives it up, or may do so.
  package mutating func giveUp(_ mutation: UUID) {
    entries[mutation]?.givenUpCount += 1
    note(mutation)
  }

  /// The call says that it has not given it up.
  package mutating func takeBack(_ mutation: UUID) {
    entries[mutation]?.givenUpCount -= 1
    note(mutation)
  }

  private mutating func note(_ mutation: UUID) {
    guard let entry = entries[mutation] else { return }
    let isOpen =
      entry.standing == .accepted && entry.version == nil && !entry.isLost
      && entry.givenUpCount == 0
    if isOpen {
      open[entry.device, default: []].insert(mutation)
    } else {
      open[entry.device]?.remove(mutation)
    }
  }

  /// The hub says that it has a mutation.
  /// - Parameter mayBe: whether the mutation may belong to the account.
  /// - Returns: what is wrong with it.
  package mutating func apply(
    _ mutation: UUID, as version: UInt64, in account: Int, mayBe: (Origin) -> Bool
  ) -> [Violation] {
    guard var entry = entries[mutation] else { return [] }
    defer { note(mutation) }
    var found: [Violation] = []
    if !mayBe(entry.origin) {
      found.append(
        Violation(.applyingOnce, "\(mutation) of \(entry.origin) was applied in account \(account)")
      )
    }
    if entry.standing == .refused {
      found.append(Violation(.refusing, "\(mutation) was refused and was applied"))
    }
    if let old = entry.version, old != version {
      found.append(
        Violation(.applyingOnce, "\(mutation) was applied as version \(old) and as \(version)"))
    }
    if let old = entry.account, old != account {
      found.append(
        Violation(.applyingOnce, "\(mutation) was applied in accounts \(old) and \(account)"))
    }
    entry.version = version
    entry.account = account
    entry.isLost = false
    entries[mutation] = entry
    return found
  }

  /// The hub lost everything of an account above a version.
  package mutating func lose(above version: UInt64, of account: Int) {
    for (mutation, entry) in entries where entry.account == account {
      guard let applied = entry.version, applied > version else { continue }
      entries[mutation]?.version = nil
      entries[mutation]?.isLost = true
      note(mutation)
    }
  }

  /// The accepted ones of a device that must wait somewhere, in the order of their UUIDs.
  package func open(on device: Int) -> [UUID] {
    (open[device] ?? []).sorted { $0.uuidString < $1.uuidString }
  }

  /// Those that were refused.
  package func isRefused(_ mutation: UUID) -> Bool { entries[mutation]?.standing == .refused }

  /// A call gives up what a device has of somebody, or may do so; what it was asked to store and has not
  /// answered yet, too.
  /// - Returns: what it gives up.
  package mutating func giveUp(
    on device: Int, where isTheirs: (Origin) -> Bool
  ) -> [UUID] {
    let gone = entries.filter { _, entry in
      entry.device == device && entry.standing != .refused && isTheirs(entry.origin)
    }.keys
    for mutation in gone { giveUp(mutation) }
    return Array(gone)
  }
}

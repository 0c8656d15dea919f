import LMDB
import Synchronization

/// Where the groups of owners lay when they were looked into last, so that the one place of a lookup that
/// is in no cache is asked for before the transaction begins and the group is searched for.
///
/// An address is never read through: where a group lies elsewhere by now, or nowhere, nothing is lost but
/// the asking.
final class RecentGroups: Sendable {
  private struct Group: ~Copyable {
    let address = Atomic<UInt>(0)
    let homes = Atomic<UInt64>(0)
  }

  // SAFETY: initialised here, as many as there are groups, and changed by atomics only.
  private nonisolated(unsafe) let groups: UnsafeMutablePointer<Group>

  init() {
    groups = .allocate(capacity: Int(OwnerGroup.count))
    for index in 0..<Int(OwnerGroup.count) { (groups + index).initialize(to: Group()) }
  }

  deinit {
    groups.deinitialize(count: Int(OwnerGroup.count))
    groups.deallocate()
  }

  /// Asks for the line in which an owner's tag probably lies.
  func ask(for place: OwnerGroup.Place) {
    let group = groups + Int(place.group)
    let address = group.pointee.address.load(ordering: .relaxed)
    guard address != 0 else { return }
    let homes = group.pointee.homes.load(ordering: .relaxed)
    askForMemory(at: address &+ UInt(OwnerGroup.offset(of: place.tag, homes: homes)))
  }

  /// A group was found there.
  /// - Throws: `damaged`.
  func note(_ place: OwnerGroup.Place, _ bytes: RawSpan) throws(StoreError) {
    let homes = try OwnerGroup.homes(in: bytes)
    let group = groups + Int(place.group)
    let address = bytes.withUnsafeBytes { UInt(bitPattern: $0.baseAddress) }
    // Most often it lies where it lay: a word that is not written is shared by all cores.
    if group.pointee.address.load(ordering: .relaxed) != address {
      group.pointee.address.store(address, ordering: .relaxed)
    }
    if group.pointee.homes.load(ordering: .relaxed) != homes {
      group.pointee.homes.store(homes, ordering: .relaxed)
    }
  }
}

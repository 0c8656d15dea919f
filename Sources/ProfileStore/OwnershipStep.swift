/// The places between two durable steps of a call that changes what an area is: where a test ends
/// the process, to prove that the next opening finds its way.
package enum OwnershipStep: String, CaseIterable, Sendable, Codable {
  /// The intent is in the registry, nothing else.
  case provisionIntended
  /// The area is whole under its temporary name.
  case provisionMade
  /// The area is in place, its row is missing.
  case provisionPlaced
  /// The intent is in the registry, the area has no owner.
  case bindIntended
  /// The area has its owner, the row does not say so.
  case bindWritten
  /// The intent is in the registry, the source is not frozen.
  case adoptIntended
  /// The source is frozen, nothing was copied.
  case adoptFrozen
  /// The account's area has the content, the source is only frozen.
  case adoptCopied
  /// The source says `moved`, the row does not.
  case adoptMoved
  /// The intent is in the registry, the area does not say `erased`.
  case eraseIntended
  /// The area says `erased`, its files are there.
  case eraseMarked
  /// The directory has its last name, its files are there.
  case eraseRenamed
  /// The files are gone, the registry still names what was begun.
  case eraseRemoved
}

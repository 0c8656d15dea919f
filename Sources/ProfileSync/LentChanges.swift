import ProfileStore

/// The changes of a batch, lent in place: each record at most once.
///
/// An app that looks only at IDs and versions touches no byte of a payload, and nothing is allocated
/// for a change. It cannot be kept beyond the batch, which the compiler checks. `for` loops take
/// ``copies()``; without copying it is ``forEach(_:)``, or ``indices`` with the subscript.
public struct LentChanges: ~Escapable {
  private let contents: BatchContents
  /// The only page of a batch that is all of it.
  private let page: UnsafeRawBufferPointer?

  @_lifetime(borrow contents)
  init(_ contents: borrowing BatchContents) {
    self.contents = copy contents
    page = contents.slots == nil ? contents.pages[0].memory : nil
  }

  /// How many changes there are; none when a replay only tells an app that it is complete again.
  public var count: Int { contents.count }

  /// Whether there is none.
  public var isEmpty: Bool { contents.count == 0 }

  /// The places of all changes, for the subscript.
  public var indices: Range<Int> { 0..<contents.count }

  /// A change, in place.
  /// - Precondition: the index is one of ``indices``.
  /// - Cost: some nanoseconds.
  public subscript(index: Int) -> LentChange {
    @_lifetime(copy self)
    get {
      precondition(index >= 0 && index < contents.count, "a batch has no such change")
      // SAFETY: what it lends lies in a page, which `contents` keeps, and that lives as long as what
      // `self` was lent from.
      return _overrideLifetime(change(at: index), copying: self)
    }
  }

  @inline(__always) @_lifetime(immortal)
  private func change(at index: Int) -> LentChange {
    if let page { return LentChange(page, index, edit: 0) }
    guard let slot = contents.slots?[index] else {
      preconditionFailure("a batch of several pages has a slot for each change")
    }
    return LentChange(
      contents.pages[Int(slot.page)].memory, Int(slot.index), edit: slot.edit)
  }

  /// Lends each change to `body`, in order of their versions.
  /// - Throws: what `body` throws; the changes behind that one are not lent.
  public func forEach(_ body: (borrowing LentChange) throws -> Void) rethrows {
    for index in 0..<contents.count {
      try body(_overrideLifetime(change(at: index), copying: self))
    }
  }

  /// Copies of all changes, which may be kept, for comfort: `for change in changes.copies()`.
  /// - Cost: two allocations for each change, and its bytes copied.
  public func copies() -> [Change] {
    var copies: [Change] = []
    copies.reserveCapacity(count)
    for index in indices { copies.append(self[index].copy()) }
    return copies
  }
}

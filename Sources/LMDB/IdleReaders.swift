import Synchronization

/// Read transactions that were reset: renewing one costs a tenth of beginning one.
///
/// At most 16 are kept, since each holds a reader slot.
@safe final class IdleReaders: @unchecked Sendable {
  // SAFETY (@unchecked Sendable): the handles are behind the mutex; a reset transaction belongs to
  // no thread (MDB_NOTLS), so whoever takes it out may use it.
  private let handles = Mutex<[UInt]>([])

  static let countMax = 16

  /// Takes one out, or nil when there is none.
  @unsafe func take() -> OpaquePointer? {
    unsafe handles.withLock { $0.popLast() }.flatMap { unsafe OpaquePointer(bitPattern: $0) }
  }

  /// Keeps one.
  /// - Returns: false when enough are kept; the caller ends it then.
  @unsafe func keep(_ reader: OpaquePointer) -> Bool {
    let bits = UInt(bitPattern: reader)
    return handles.withLock { handles in
      guard handles.count < Self.countMax else { return false }
      handles.append(bits)
      return true
    }
  }
}

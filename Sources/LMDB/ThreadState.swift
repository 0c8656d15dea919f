import Foundation
import Synchronization

/// Which transactions this thread is inside of: what the compiler cannot see.
///
/// LMDB hangs on a write within a write of one thread and reports nothing, so it is remembered per
/// thread and trapped with a sentence. A read within a read uses the outer one's snapshot.
@safe struct ThreadState {
  // SAFETY: the record belongs to one thread, and no value of this type leaves the function that
  // asked for `current`.
  private let record: UnsafeMutablePointer<Record>

  /// One transaction that the thread is inside of.
  @safe struct Level {
    /// The number of its environment.
    var environment: UInt64
    /// The handle of a read; nil for a write.
    var reader: OpaquePointer?
    /// The cursors of it that live.
    var cursorCount = 0
  }

  /// The innermost level lies in the record itself: depths of 0 and 1 allocate nothing.
  private struct Record {
    let number: Int
    var depth = 0
    var innermost = unsafe Level(environment: 0, reader: nil)
    var outer: [Level] = []
  }

  /// This thread's state, made on first use and released when the thread ends.
  static var current: ThreadState {
    @inline(__always) get {
      guard let pointer = unsafe pthread_getspecific(key) else { return makeForThisThread() }
      return unsafe ThreadState(record: pointer.assumingMemoryBound(to: Record.self))
    }
  }

  @inline(never)
  private static func makeForThisThread() -> ThreadState {
    let record = UnsafeMutablePointer<Record>.allocate(capacity: 1)
    let number = threadsSeen.wrappingAdd(1, ordering: .relaxed).oldValue
    unsafe record.initialize(to: Record(number: number))
    let result = unsafe pthread_setspecific(key, record)
    precondition(result == 0, "LMDB: no memory for a thread's state")
    return unsafe ThreadState(record: record)
  }

  private static let threadsSeen = Atomic<Int>(0)

  private static let key: pthread_key_t = {
    var key = pthread_key_t()
    let result: Int32
    #if canImport(Darwin)
      result = unsafe pthread_key_create(&key) { unsafe ThreadState.release($0) }
    #else
      result = unsafe pthread_key_create(&key) { pointer in
        if let pointer = unsafe pointer { unsafe ThreadState.release(pointer) }
      }
    #endif
    precondition(result == 0, "LMDB: the process has no thread key left")
    return key
  }()

  /// Called when the thread ends.
  private static func release(_ pointer: UnsafeMutableRawPointer) {
    // SAFETY: the key holds only what `makeForThisThread` put there.
    let record = unsafe pointer.assumingMemoryBound(to: Record.self)
    unsafe record.deinitialize(count: 1)
    unsafe record.deallocate()
  }

  /// Numbers the threads in the order in which they came here; spreads them over the reader slots.
  @inline(__always) var number: Int { unsafe record.pointee.number }

  /// Whether the thread is inside no transaction of any environment.
  @inline(__always) var isOutside: Bool { unsafe record.pointee.depth == 0 }

  func isWriting(_ environment: Environment) -> Bool {
    level { unsafe $0.environment == environment.number && $0.reader == nil } != nil
  }

  func isReading(_ environment: Environment) -> Bool {
    unsafe reader(of: environment) != nil
  }

  /// The snapshot of that environment which the thread is inside of, if it is.
  @unsafe func reader(of environment: Environment) -> OpaquePointer? {
    let found = level { unsafe $0.environment == environment.number && $0.reader != nil }
    return unsafe found?.reader
  }

  private func level(where isMeant: (Level) -> Bool) -> Level? {
    guard !isOutside else { return nil }
    let innermost = unsafe record.pointee.innermost
    if isMeant(innermost) { return innermost }
    return unsafe record.pointee.outer.last(where: isMeant)
  }

  /// Enters a transaction; `reader` is nil for a write.
  @inline(__always)
  func enter(_ environment: Environment, reader: OpaquePointer? = nil) {
    if unsafe record.pointee.depth > 0 { keepInnermost() }
    unsafe record.pointee.depth += 1
    unsafe record.pointee.innermost = Level(environment: environment.number, reader: reader)
  }

  /// Leaves the innermost transaction.
  @inline(__always)
  func leave() {
    if unsafe record.pointee.innermost.cursorCount != 0 { trapKeptCursor() }
    unsafe record.pointee.depth -= 1
    if unsafe record.pointee.depth > 0 { restoreInnermost() }
  }

  /// Counts the cursors of a transaction, `reader` being nil for a write.
  ///
  /// The compiler keeps a cursor within its transaction except where it is assigned to a variable
  /// that the closure captured: of types that cannot be copied, Swift 6.3 does not see that.
  func countCursor(_ change: Int, of environment: UInt64, reader: OpaquePointer?) {
    // The outermost of reads inside each other is the one that ends their common snapshot.
    for index in unsafe record.pointee.outer.indices {
      let level = unsafe record.pointee.outer[index]
      if unsafe level.environment == environment && level.reader == reader {
        unsafe record.pointee.outer[index].cursorCount += change
        return
      }
    }
    let innermost = unsafe record.pointee.innermost
    guard unsafe innermost.environment == environment && innermost.reader == reader else { return }
    unsafe record.pointee.innermost.cursorCount += change
  }

  @inline(never)
  private func trapKeptCursor() -> Never {
    trap("a cursor was kept beyond its transaction; keep its key instead")
  }

  @inline(never)
  private func keepInnermost() { unsafe record.pointee.outer.append(record.pointee.innermost) }

  @inline(never)
  private func restoreInnermost() {
    unsafe record.pointee.innermost = record.pointee.outer.removeLast()
  }
}

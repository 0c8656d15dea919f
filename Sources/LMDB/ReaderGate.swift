import Foundation
import Synchronization

/// Lets readers in together, and one exclusive act (moving the map, closing) alone.
///
/// The map may be moved only while no transaction of this process looks at it; LMDB does not check.
/// A reader claims one of 16 slots and then looks at `word`; an exclusive act sets `word` and then
/// looks at the slots. Both orders are sequentially consistent, so one of them sees the other:
/// no lock is taken and nothing is shared but the word, which is only read.
///
/// A slot keeps its read transaction, reset, for the next reader. More simultaneous readers than
/// slots are counted in `uncached` and begin a transaction each.
@safe struct ReaderGate: ~Copyable {
  /// What keeps readers out; 0 when nothing does.
  private let word = Atomic<UInt>(0)
  /// Readers inside without a slot.
  private let uncached = Atomic<Int>(0)
  // SAFETY: allocated in `init`, freed in `deinit`; every access in between is atomic.
  private let slots: UnsafeMutablePointer<Slot>
  // SAFETY: as above; each belongs to whoever claimed the slot of its number.
  private let cursors: UnsafeMutablePointer<IdleCursors>

  static let slotCount = 16

  /// Alone on its cache line: readers of different slots do not slow each other down.
  struct Slot: ~Copyable {
    /// 0: free and empty; 1: claimed; else a reset transaction, the lowest bit saying that it was
    /// used since the last ``ReaderGate/trim(_:)``.
    let state = Atomic<UInt>(0)
    private let rest = InlineArray<7, UInt>(repeating: 0)
  }

  private static let claimed: UInt = 1
  private static let usedBit: UInt = 1
  private static let exclusiveBit: UInt = 1
  private static let closedBit: UInt = 2
  private static let brokenBit: UInt = 4

  init() {
    // The cache line of common processors is 64 bytes.
    let memory = UnsafeMutableRawPointer.allocate(
      byteCount: MemoryLayout<Slot>.stride * Self.slotCount, alignment: 64)
    unsafe slots = memory.bindMemory(to: Slot.self, capacity: Self.slotCount)
    for index in 0..<Self.slotCount { unsafe (slots + index).initialize(to: Slot()) }
    unsafe cursors = UnsafeMutablePointer.allocate(capacity: Self.slotCount)
    unsafe cursors.initialize(repeating: IdleCursors(), count: Self.slotCount)
  }

  deinit {
    for index in 0..<Self.slotCount { unsafe cursors[index].close() }
    unsafe cursors.deallocate()
    unsafe slots.deallocate()
  }

  var isClosed: Bool { word.load(ordering: .acquiring) & Self.closedBit != 0 }
  var isBroken: Bool { word.load(ordering: .acquiring) & Self.brokenBit != 0 }
}

// MARK: - Readers

extension ReaderGate {
  /// A place inside, to be given back.
  @safe struct Place {
    /// The claimed slot, or -1 for a reader without one.
    let slot: Int
    /// The slot's reset transaction, to be renewed.
    let reader: OpaquePointer?
  }

  /// The thread's own slot with its transaction, when nothing stands against it: the fast way in.
  @unsafe @inline(__always)
  func enterAtOnce(_ thread: ThreadState) -> Place? {
    let index = Self.slot(of: thread)
    let state = unsafe slots[index].state.load(ordering: .relaxed)
    guard state > Self.claimed,
      unsafe slots[index].state.compareExchange(
        expected: state, desired: Self.claimed, ordering: .sequentiallyConsistent
      ).exchanged
    else { return nil }
    guard word.load(ordering: .sequentiallyConsistent) == 0 else {
      unsafe slots[index].state.store(state, ordering: .releasing)
      return nil
    }
    return unsafe Place(slot: index, reader: OpaquePointer(bitPattern: state & ~Self.usedBit))
  }

  /// A place inside; waits while an exclusive act keeps readers out.
  /// - Parameter isInside: the thread is inside already: it must not wait for an act that waits for
  ///   it.
  /// - Returns: nil when the gate was closed for ever.
  @unsafe func enter(_ thread: ThreadState, isInside: Bool) -> Place? {
    while true {
      let place = unsafe claim(startingAt: Self.slot(of: thread))
      let now = word.load(ordering: .sequentiallyConsistent)
      if now == 0 || isInside { return place }
      unsafe leave(place)
      if now & Self.closedBit != 0 { return nil }
      waitWhileExclusive()
    }
  }

  @unsafe private func claim(startingAt first: Int) -> Place {
    for step in 0..<Self.slotCount {
      let index = (first + step) % Self.slotCount
      let state = unsafe slots[index].state.load(ordering: .relaxed)
      if state != Self.claimed,
        unsafe slots[index].state.compareExchange(
          expected: state, desired: Self.claimed, ordering: .sequentiallyConsistent
        ).exchanged
      {
        return unsafe Place(slot: index, reader: OpaquePointer(bitPattern: state & ~Self.usedBit))
      }
    }
    uncached.wrappingAdd(1, ordering: .sequentiallyConsistent)
    return unsafe Place(slot: -1, reader: nil)
  }

  /// The cursors kept in a claimed slot; nil for a reader without one.
  @unsafe @inline(__always)
  func cursors(of slot: Int) -> UnsafeMutablePointer<IdleCursors>? {
    slot >= 0 ? unsafe cursors + slot : nil
  }

  /// Takes the reset transaction out of another slot that nobody is in.
  @unsafe func takeIdleReader() -> OpaquePointer? {
    for index in 0..<Self.slotCount {
      if let reader = unsafe take(index, where: { _ in true }) { return unsafe reader }
    }
    return nil
  }

  /// Takes all reset transactions out. The gate is barred or closed: nobody is inside, but one who
  /// came to look may have claimed a slot for a moment.
  @unsafe func takeAll(_ end: (OpaquePointer) -> Void) {
    for index in 0..<Self.slotCount {
      while unsafe slots[index].state.load(ordering: .relaxed) == Self.claimed { sched_yield() }
      if let reader = unsafe take(index, where: { _ in true }) { unsafe end(reader) }
    }
  }

  /// Leaves as it was entered.
  @unsafe func leave(_ place: Place) {
    unsafe leave(slot: place.slot, keeping: place.reader)
  }

  /// Leaves, keeping a reset transaction in the slot for the next reader.
  /// - Precondition: without a slot there is none to keep.
  @unsafe @inline(__always)
  func leave(slot: Int, keeping reader: OpaquePointer?) {
    guard slot >= 0 else {
      uncached.wrappingSubtract(1, ordering: .sequentiallyConsistent)
      return
    }
    let bits = UInt(bitPattern: reader)
    unsafe slots[slot].state.store(bits == 0 ? 0 : bits | Self.usedBit, ordering: .releasing)
  }

  /// Threads that came one after the other do not get neighbouring cache lines.
  @inline(__always)
  private static func slot(of thread: ThreadState) -> Int { (thread.number &* 5) & (slotCount - 1) }

  private func waitWhileExclusive() {
    Self.parking.lock()
    while word.load(ordering: .acquiring) & Self.exclusiveBit != 0 { Self.parking.wait() }
    Self.parking.unlock()
  }

  /// Shared by all environments: exclusive acts are rare and short.
  private static let parking = NSCondition()
}

// MARK: - Idle transactions

extension ReaderGate {
  /// Takes out the transactions that no reader has used since the last call.
  @unsafe func trim(_ end: (OpaquePointer) -> Void) {
    for index in 0..<Self.slotCount {
      if let idle = unsafe take(index, where: { $0 & Self.usedBit == 0 }) {
        unsafe end(idle)
        continue
      }
      let state = unsafe slots[index].state.load(ordering: .relaxed)
      guard state > Self.claimed else { continue }
      // Lost to a reader that came in between: then it is in use.
      _ = unsafe slots[index].state.compareExchange(
        expected: state, desired: state & ~Self.usedBit, ordering: .relaxed)
    }
  }

  @unsafe private func take(_ index: Int, where isWanted: (UInt) -> Bool) -> OpaquePointer? {
    let state = unsafe slots[index].state.load(ordering: .relaxed)
    guard state > Self.claimed, isWanted(state),
      unsafe slots[index].state.compareExchange(
        expected: state, desired: Self.claimed, ordering: .acquiring
      ).exchanged
    else { return nil }
    let kept = unsafe cursors + index
    unsafe kept.pointee.close()
    unsafe slots[index].state.store(0, ordering: .releasing)
    return unsafe OpaquePointer(bitPattern: state & ~Self.usedBit)
  }

  /// How many reset transactions are kept, at least.
  var idleCount: Int {
    (0..<Self.slotCount).count {
      unsafe slots[$0].state.load(ordering: .relaxed) > Self.claimed
    }
  }
}

// MARK: - Exclusive acts

extension ReaderGate {
  /// What an exclusive act leaves behind.
  enum Outcome {
    case open
    case closed
    case broken
  }

  /// Runs `body` while no reader is inside. One exclusive act at a time: the writer's turn sees to it.
  ///
  /// New readers are kept out for 2 ms at most at a time, then let through for 20 ms: one long reader
  /// delays the act, not the other readers.
  /// - Parameter patience: how long to try.
  /// - Returns: false when readers were still inside after that; nothing ran then.
  func exclusively(patience: Duration, _ body: () -> Outcome) -> Bool {
    let clock = ContinuousClock()
    let deadline = clock.now + patience
    while true {
      word.bitwiseOr(Self.exclusiveBit, ordering: .sequentiallyConsistent)
      if waitUntilEmpty(clock.now + Self.slice) {
        switch body() {
        case .open: break
        case .closed: word.bitwiseOr(Self.closedBit, ordering: .sequentiallyConsistent)
        case .broken:
          word.bitwiseOr(Self.closedBit | Self.brokenBit, ordering: .sequentiallyConsistent)
        }
        letIn()
        return true
      }
      letIn()
      guard clock.now < deadline else { return false }
      // Not waiting for the long reader alone, which may be one of many that overlap.
      _ = waitUntilEmpty(min(deadline, clock.now + Self.pause))
    }
  }

  private static let slice = Duration.milliseconds(2)
  private static let pause = Duration.milliseconds(20)

  private func letIn() {
    Self.parking.lock()
    word.bitwiseAnd(~Self.exclusiveBit, ordering: .sequentiallyConsistent)
    Self.parking.broadcast()
    Self.parking.unlock()
  }

  /// - Returns: whether nobody was inside before the deadline.
  private func waitUntilEmpty(_ deadline: ContinuousClock.Instant) -> Bool {
    // A read takes microseconds: yielding a few times mostly does, and nobody has to wake us.
    var rounds = 0
    while !isEmpty {
      guard ContinuousClock.now < deadline else { return false }
      rounds += 1
      if rounds < 50 { sched_yield() } else { usleep(100) }
    }
    return true
  }

  private var isEmpty: Bool {
    guard uncached.load(ordering: .sequentiallyConsistent) == 0 else { return false }
    for index in 0..<Self.slotCount
    where unsafe slots[index].state.load(ordering: .sequentiallyConsistent) == Self.claimed {
      return false
    }
    return true
  }
}

package import Foundation
import HubProtocol
import LMDB

/// Changes of the hub that belong together, packed into one piece of memory: a page as it was pulled,
/// or one that was staged and is read back in place through the memory map.
///
/// Form: count (7 bytes), whether a change is withheld (1 byte), then a head of 32 bytes for each
/// change, then all IDs, then all payloads; numbers are little-endian, places count from the beginning.
/// A head: version (8), place of the payload (8), its size (4), place of the ID (4), its size (2),
/// flags (1), 5 bytes of nothing. What an app needs to choose lies in the heads and IDs, so that it
/// touches no payload that it does not ask for.
package final class ChangePage: @unchecked Sendable {
  /// What is known of a change beside its version.
  package struct Flags: OptionSet, Sendable, Hashable {
    package var rawValue: UInt8
    package init(rawValue: UInt8) { self.rawValue = rawValue }

    package static let isDeleted = Flags(rawValue: 1)
    /// No tombstone said it: the record was not among what a whole scan brought.
    package static let isInferred = Flags(rawValue: 2)
    /// Older than known: not handed over, but there at the hub.
    package static let isOutdated = Flags(rawValue: 4)
    /// Nothing is to be done with it: a later page of its leg has a newer version, or the metadata
    /// knows a newer tombstone, which a scan delivers at its end. It does not count as brought.
    package static let isSkipped = Flags(rawValue: 32)
    /// What is not handed over.
    package static let withheld: Flags = [.isOutdated, .isSkipped]
    /// An edit of the record waits.
    package static let isPending = Flags(rawValue: 8)
    /// An edit of the record is parked.
    package static let isParked = Flags(rawValue: 16)
  }

  package struct Head: Sendable {
    package var version: UInt64
    package var payloadStart: Int
    package var payloadByteCount: Int
    package var idStart: Int
    package var idByteCount: Int
    package var flags: Flags
  }

  package static let headByteCount = 32
  package static let startByteCount = 8
  private static let withheldPlace = 7
  private static let flagsPlace = 26

  // SAFETY (@unchecked Sendable): nothing is written once others have the page; see `mark`.
  /// `keeper` keeps it in place; without one it is the page's own.
  /// Where it lies: for looking at heads in bulk, in the form above, while the page is there.
  package let memory: UnsafeRawBufferPointer
  private let keeper: AnyObject?
  /// How many changes there are.
  package let count: Int

  /// Packs changes.
  package convenience init(_ changes: [IncomingChange]) {
    self.init(
      packing: changes.count,
      idByteCount: changes.reduce(0) { $0 + $1.record.bytes.count },
      payloadByteCount: changes.reduce(0) { $0 + ($1.payload?.count ?? 0) }
    ) { packer in
      for change in changes {
        var flags: Flags = []
        if change.isDeleted { flags.insert(.isDeleted) }
        if change.isInferred { flags.insert(.isInferred) }
        packer.append(
          id: change.record.bytes, version: change.version, payload: change.payload, flags: flags)
      }
    }
  }

  /// Packs so many changes with so many bytes.
  package init(
    packing count: Int, idByteCount: Int, payloadByteCount: Int, _ fill: (inout Packer) -> Void
  ) {
    let idStart = Self.startByteCount + Self.headByteCount * count
    let byteCount = idStart + idByteCount + payloadByteCount
    let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: byteCount, alignment: 16)
    memory.storeBytes(of: UInt64(count).littleEndian, as: UInt64.self)
    var packer = Packer(
      memory: memory, next: 0, count: count, idEnd: idStart, payloadEnd: idStart + idByteCount)
    fill(&packer)
    precondition(
      packer.next == count && packer.payloadEnd == byteCount, "a page was packed by halves")
    self.memory = UnsafeRawBufferPointer(memory)
    self.count = count
    keeper = nil
  }

  /// Takes a page that lies in memory already, as ``bytes`` gave it. Its heads are looked at, so that
  /// a damaged page is an error here and no crash later; no payload is touched.
  /// - Parameter keeper: keeps the memory in place and as it is.
  /// - Throws: `damaged` when it is no page.
  package init(_ memory: UnsafeRawBufferPointer, keptBy keeper: AnyObject) throws(StoreError) {
    count = try Self.count(in: memory)
    self.memory = memory
    self.keeper = keeper
  }

  /// Takes a copy of a page that lies in memory; it may be marked.
  /// - Throws: `damaged` when it is no page.
  package init(copying memory: UnsafeRawBufferPointer) throws(StoreError) {
    count = try Self.count(in: memory)
    let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: memory.count, alignment: 16)
    copy.copyMemory(from: memory)
    self.memory = UnsafeRawBufferPointer(copy)
    keeper = nil
  }

  /// Looks whether it is a page: whether all places of its heads lie within it.
  private static func count(in memory: UnsafeRawBufferPointer) throws(StoreError) -> Int {
    let damaged = StoreError.damaged("a staged page")
    guard memory.count >= startByteCount else { throw damaged }
    let count = UInt64(littleEndian: memory.loadUnaligned(as: UInt64.self)) & (1 << 56 - 1)
    guard count <= UInt64((memory.count - startByteCount) / headByteCount) else { throw damaged }
    for index in 0..<Int(count) {
      let head = head(at: index, in: memory)
      guard head.payloadStart >= 0, head.payloadStart <= memory.count - head.payloadByteCount,
        head.idStart <= memory.count - head.idByteCount
      else { throw damaged }
    }
    return Int(count)
  }

  deinit {
    if keeper == nil { memory.deallocate() }
  }

  /// The whole page, for staging.
  package var bytes: RawSpan {
    @_lifetime(borrow self)
    get {
      let span = RawSpan(_unsafeBytes: memory)
      return _overrideLifetime(span, borrowing: self)
    }
  }

  /// How many bytes the page has.
  package var byteCount: Int { memory.count }

  /// The head of a change. Its places lie within the page: it was packed here or looked at when it
  /// was taken.
  package subscript(index: Int) -> Head {
    precondition(index >= 0 && index < count, "a page has no such change")
    return Self.head(at: index, in: memory)
  }

  static func head(at index: Int, in memory: UnsafeRawBufferPointer) -> Head {
    let start = startByteCount + index * headByteCount
    func number<T: FixedWidthInteger>(_ place: Int, as type: T.Type) -> T {
      T(littleEndian: memory.loadUnaligned(fromByteOffset: start + place, as: type))
    }
    return Head(
      version: number(0, as: UInt64.self),
      payloadStart: Int(truncatingIfNeeded: number(8, as: UInt64.self)),
      payloadByteCount: Int(number(16, as: UInt32.self)),
      idStart: Int(number(20, as: UInt32.self)), idByteCount: Int(number(24, as: UInt16.self)),
      flags: Flags(rawValue: memory[start + flagsPlace]))
  }

  /// The head of a change, for callers that take it for something that can fail.
  package func head(at index: Int) throws(StoreError) -> Head { self[index] }

  /// Adds to what is known of a change.
  /// - Precondition: the page was packed here, and nobody else has it yet.
  package func mark(_ index: Int, as flags: Flags) {
    precondition(keeper == nil, "a page is marked that is somebody else's")
    let memory = UnsafeMutableRawBufferPointer(mutating: memory)
    let place = Self.startByteCount + index * Self.headByteCount + Self.flagsPlace
    memory[place] = self[index].flags.union(flags).rawValue
    if !flags.isDisjoint(with: .withheld) { memory[Self.withheldPlace] = 1 }
  }

  /// Whether a change is outdated or skipped: else nobody has to look at the heads to know.
  package var hasWithheld: Bool { memory[Self.withheldPlace] != 0 }

  /// The bytes of a record's ID.
  @_lifetime(borrow self)
  package func id(_ head: Head) -> RawSpan {
    bytes.extracting(head.idStart..<head.idStart + head.idByteCount)
  }

  /// The bytes of a payload; none for a deletion.
  @_lifetime(borrow self)
  package func payload(_ head: Head) -> RawSpan {
    bytes.extracting(head.payloadStart..<head.payloadStart + head.payloadByteCount)
  }

  /// Writes the changes of a page, one after another.
  package struct Packer {
    fileprivate let memory: UnsafeMutableRawBufferPointer
    fileprivate var next: Int
    fileprivate let count: Int
    fileprivate var idEnd: Int
    fileprivate var payloadEnd: Int

    package mutating func append(
      id: [UInt8], version: UInt64, payload: Data?, flags: Flags
    ) {
      guard let payload else {
        return append(id: id.span.bytes, version: version, payload: RawSpan(), flags: flags)
      }
      append(id: id.span.bytes, version: version, payload: payload.span.bytes, flags: flags)
    }

    /// - Precondition: no more changes and bytes than were announced; an ID has at most 65,535 bytes.
    package mutating func append(id: RawSpan, version: UInt64, payload: RawSpan, flags: Flags) {
      precondition(
        next < count && payload.byteCount <= memory.count - payloadEnd
          && id.byteCount <= memory.count - idEnd, "a page was packed beyond its count")
      let start = ChangePage.startByteCount + next * ChangePage.headByteCount
      func store(_ number: some FixedWidthInteger, at place: Int) {
        memory.storeBytes(
          of: number.littleEndian, toByteOffset: start + place,
          as: type(of: number.littleEndian))
      }
      store(version, at: 0)
      store(UInt64(payloadEnd), at: 8)
      store(UInt32(payload.byteCount), at: 16)
      store(UInt32(idEnd), at: 20)
      store(UInt16(id.byteCount), at: 24)
      store(UInt16(flags.rawValue), at: ChangePage.flagsPlace)
      store(UInt32(0), at: 28)
      copy(id, to: idEnd)
      copy(payload, to: payloadEnd)
      idEnd += id.byteCount
      payloadEnd += payload.byteCount
      next += 1
    }

    private func copy(_ bytes: RawSpan, to place: Int) {
      bytes.withUnsafeBytes { bytes in
        UnsafeMutableRawBufferPointer(rebasing: memory[place..<place + bytes.count])
          .copyMemory(from: bytes)
      }
    }
  }
}

extension ChangePage {
  /// A change as a value of its own, copied.
  package func change(at index: Int) throws(StoreError) -> IncomingChange {
    let head = self[index]
    return IncomingChange(
      record: RecordID(copying: id(head)), version: head.version,
      payload: head.flags.contains(.isDeleted) ? nil : Data(payload(head).copiedBytes()),
      isDeleted: head.flags.contains(.isDeleted), isInferred: head.flags.contains(.isInferred))
  }
}

extension RecordID {
  /// Takes bytes that were validated when they came.
  package init(copying bytes: RawSpan) { self.init(uncheckedBytes: bytes.copiedBytes()) }
}

package import Foundation
import HubProtocol
import LMDB

/// Changes of the hub that belong together, packed into one piece of memory: a page as it was pulled,
/// or one that was staged and is read back in place through the memory map.
///
/// Form: count (u64), then a head of 32 bytes for each change, then all IDs, then all payloads; numbers
/// are little-endian, places count from the beginning. What an app needs to choose lies in the heads
/// and IDs, so that it touches no payload that it does not ask for.
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

  /// Read only once the page is made. `keeper` keeps it in place.
  private let memory: UnsafeRawBufferPointer
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

  /// Takes a page that lies in memory already, as ``bytes`` gave it.
  /// - Parameter keeper: keeps the memory in place and as it is.
  /// - Throws: `damaged` when it is no page.
  package init(_ memory: UnsafeRawBufferPointer, keptBy keeper: AnyObject) throws(StoreError) {
    let damaged = StoreError.damaged("a staged page")
    guard memory.count >= Self.startByteCount else { throw damaged }
    let count = UInt64(littleEndian: memory.loadUnaligned(as: UInt64.self))
    guard count <= UInt64((memory.count - Self.startByteCount) / Self.headByteCount) else {
      throw damaged
    }
    self.count = Int(count)
    self.memory = memory
    self.keeper = keeper
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

  /// The head of a change; its places are checked, so that a damaged page is an error and no crash.
  package func head(at index: Int) throws(StoreError) -> Head {
    precondition(index >= 0 && index < count, "a page has no such change")
    let start = Self.startByteCount + index * Self.headByteCount
    func number<T: FixedWidthInteger>(_ place: Int, as type: T.Type) -> Int {
      Int(truncatingIfNeeded: memory.loadUnaligned(fromByteOffset: start + place, as: type))
    }
    let head = Head(
      version: UInt64(
        littleEndian: memory.loadUnaligned(fromByteOffset: start, as: UInt64.self)),
      payloadStart: number(8, as: UInt64.self), payloadByteCount: number(16, as: UInt32.self),
      idStart: number(20, as: UInt32.self), idByteCount: number(24, as: UInt16.self),
      flags: Flags(rawValue: memory[start + 26]))
    guard head.payloadStart >= 0, head.payloadStart <= memory.count - head.payloadByteCount,
      head.idStart <= memory.count - head.idByteCount
    else { throw .damaged("a staged page") }
    return head
  }

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
      let payloadByteCount = payload?.count ?? 0
      precondition(next < count, "a page was packed beyond its count")
      let start = ChangePage.startByteCount + next * ChangePage.headByteCount
      memory.storeBytes(of: version.littleEndian, toByteOffset: start, as: UInt64.self)
      memory.storeBytes(
        of: UInt64(payloadEnd).littleEndian, toByteOffset: start + 8, as: UInt64.self)
      memory.storeBytes(
        of: UInt32(payloadByteCount).littleEndian, toByteOffset: start + 16, as: UInt32.self)
      memory.storeBytes(of: UInt32(idEnd).littleEndian, toByteOffset: start + 20, as: UInt32.self)
      memory.storeBytes(
        of: UInt16(id.count).littleEndian, toByteOffset: start + 24, as: UInt16.self)
      memory.storeBytes(
        of: UInt16(flags.rawValue).littleEndian, toByteOffset: start + 26, as: UInt16.self)
      memory.storeBytes(of: UInt32(0), toByteOffset: start + 28, as: UInt32.self)
      UnsafeMutableRawBufferPointer(rebasing: memory[idEnd..<idEnd + id.count]).copyBytes(from: id)
      idEnd += id.count
      if let payload {
        UnsafeMutableRawBufferPointer(rebasing: memory[payloadEnd..<payloadEnd + payloadByteCount])
          .copyBytes(from: payload)
        payloadEnd += payloadByteCount
      }
      next += 1
    }
  }
}

extension ChangePage {
  /// A change as a value of its own, copied.
  package func change(at index: Int) throws(StoreError) -> IncomingChange {
    let head = try head(at: index)
    return IncomingChange(
      record: RecordID(uncheckedBytes: id(head).copiedBytes()), version: head.version,
      payload: head.flags.contains(.isDeleted) ? nil : Data(payload(head).copiedBytes()),
      isDeleted: head.flags.contains(.isDeleted), isInferred: head.flags.contains(.isInferred))
  }
}

import Foundation
import HubProtocol
import LMDB

/// A mutation as it lies in the outbox, read in place: what sending and settling need of it, nothing
/// copied. ``OutboxEntry`` is the whole of it as a value.
struct StoredEntry: ~Escapable {
  let mutation: UUID
  let isCallerGiven: Bool
  let isParked: Bool
  /// The account's bytes; nil: signed out.
  let stamp: RawSpan?
  let record: RawSpan
  let base: Mutation.Base?
  /// nil for a delete, and for one that is parked, which is read as a value.
  let payload: RawSpan?

  @_lifetime(copy bytes)
  init(_ bytes: RawSpan) throws(StoreError) {
    var reader = SpanReader(bytes, of: "mutation")
    let flags = try OutboxEntry.flags(&reader)
    isCallerGiven = flags & OutboxEntry.Flag.isCallerGiven != 0
    isParked = flags & OutboxEntry.Flag.isParked != 0
    mutation = try reader.readUUID()
    try reader.skip(OutboxEntry.sumAndTimeByteCount)
    stamp = try reader.readFlag() ? try reader.readBytes() : nil
    record = try reader.readBytes()
    base = try reader.readFlag() ? try Self.readBase(&reader) : nil
    if isParked {
      payload = nil
    } else if flags & OutboxEntry.Flag.isPut != 0 {
      payload = reader.rest
    } else {
      payload = nil
      guard reader.rest.byteCount == 0 else { throw reader.damaged }
    }
  }

  private static func readBase(_ reader: inout SpanReader) throws(StoreError) -> Mutation.Base {
    switch try reader.readUInt8() {
    case 0: return .mustNotExist
    case 1: return .version(try reader.readUInt64())
    case 2: return .mutation(try reader.readUUID())
    default: throw reader.damaged
    }
  }
}

/// Reads a stored form where it lies. Anything unexpected is `damaged`, never a trap.
///
/// See ``ByteReader``, which copies it first.
struct SpanReader: ~Escapable {
  private let bytes: RawSpan
  private var offset = 0
  private let what: StaticString

  @_lifetime(copy bytes)
  init(_ bytes: RawSpan, of what: StaticString) {
    self.bytes = bytes
    self.what = what
  }

  var damaged: StoreError { .damaged("\(what)") }

  /// What was not read yet.
  var rest: RawSpan {
    @_lifetime(copy self)
    get { bytes.extracting(offset..<bytes.byteCount) }
  }

  private mutating func take(_ count: Int) throws(StoreError) -> Int {
    guard count <= bytes.byteCount - offset else { throw damaged }
    defer { offset += count }
    return offset
  }

  mutating func skip(_ count: Int) throws(StoreError) { _ = try take(count) }

  mutating func readUInt8() throws(StoreError) -> UInt8 {
    bytes.loadBigEndian(at: try take(1))
  }

  mutating func readUInt64() throws(StoreError) -> UInt64 {
    bytes.loadBigEndian(at: try take(8))
  }

  mutating func readUUID() throws(StoreError) -> UUID { bytes.loadUUID(at: try take(16)) }

  mutating func readFlag() throws(StoreError) -> Bool {
    switch try readUInt8() {
    case 0: return false
    case 1: return true
    default: throw damaged
    }
  }

  /// Bytes with their length before them.
  @_lifetime(copy self)
  mutating func readBytes() throws(StoreError) -> RawSpan {
    let count = Int(bytes.loadBigEndian(UInt32.self, at: try take(4)))
    let start = try take(count)
    return bytes.extracting(start..<start + count)
  }
}

import Foundation
import LMDB

/// Writes the stored forms: fixed-width integers big-endian, bytes with a length before them.
struct ByteWriter {
  private(set) var bytes: [UInt8] = []

  /// - Parameter byteCount: how long the form may become without moving.
  init(byteCount: Int = 0) { if byteCount > 0 { bytes.reserveCapacity(byteCount) } }

  mutating func write(_ value: some FixedWidthInteger & UnsignedInteger) {
    withUnsafeBytes(of: value.bigEndian) { bytes.append(contentsOf: $0) }
  }

  mutating func write(_ uuid: UUID) {
    withUnsafeBytes(of: uuid.uuid) { bytes.append(contentsOf: $0) }
  }

  mutating func write(_ time: Date) { write(time.storedMilliseconds) }

  /// A length of 32 bits, then the bytes.
  mutating func write(_ value: some Collection<UInt8>) {
    write(UInt32(value.count))
    bytes.append(contentsOf: value)
  }

  mutating func write(_ value: [UInt8]) {
    write(UInt32(value.count))
    bytes.append(contentsOf: value)
  }

  mutating func write(_ value: Data) {
    write(UInt32(value.count))
    writeLast(value)
  }

  /// The rest of the form: no length before it.
  mutating func writeLast(_ value: some Collection<UInt8>) {
    bytes.append(contentsOf: value)
  }

  mutating func writeLast(_ value: Data) {
    value.withUnsafeBytes { bytes.append(contentsOf: $0) }
  }

  /// A flag, and the value if there is one.
  mutating func write<T>(_ value: T?, _ body: (inout ByteWriter, T) -> Void) {
    write(UInt8(value == nil ? 0 : 1))
    if let value { body(&self, value) }
  }
}

/// Reads a stored form. Anything unexpected is `damaged`, never a trap.
struct ByteReader {
  private let bytes: [UInt8]
  private var offset = 0
  private let what: String

  init(_ span: RawSpan, of what: String) {
    bytes = span.copiedBytes()
    self.what = what
  }

  var damaged: StoreError { .damaged(what) }

  private mutating func take(_ count: Int) throws(StoreError) -> Range<Int> {
    guard count >= 0, bytes.count - offset >= count else { throw damaged }
    defer { offset += count }
    return offset..<offset + count
  }

  private mutating func readInteger<T: FixedWidthInteger>(_ type: T.Type) throws(StoreError) -> T {
    try take(T.bitWidth / 8).reduce(into: T(0)) { $0 = $0 << 8 | T(bytes[$1]) }
  }

  mutating func readUInt8() throws(StoreError) -> UInt8 { bytes[try take(1).lowerBound] }
  mutating func readUInt32() throws(StoreError) -> UInt32 { try readInteger(UInt32.self) }
  mutating func readUInt64() throws(StoreError) -> UInt64 { try readInteger(UInt64.self) }

  mutating func readTime() throws(StoreError) -> Date {
    Date(storedMilliseconds: try readUInt64())
  }

  mutating func readUUID() throws(StoreError) -> UUID {
    let range = try take(16)
    // SAFETY: any 16 bytes are a UUID, and `take` checked that they are there.
    return UUID(
      uuid: bytes.withUnsafeBytes {
        $0.loadUnaligned(fromByteOffset: range.lowerBound, as: uuid_t.self)
      })
  }

  mutating func readBytes() throws(StoreError) -> [UInt8] {
    let count = Int(try readUInt32())
    return Array(bytes[try take(count)])
  }

  mutating func readText() throws(StoreError) -> String {
    guard let text = String(validating: try readBytes(), as: UTF8.self) else { throw damaged }
    return text
  }

  mutating func readLast() -> Data {
    defer { offset = bytes.count }
    return Data(bytes[offset...])
  }

  mutating func readFlag() throws(StoreError) -> Bool {
    switch try readUInt8() {
    case 0: return false
    case 1: return true
    default: throw damaged
    }
  }

  mutating func readOptional<T>(
    _ body: (inout ByteReader) throws(StoreError) -> T
  ) throws(StoreError) -> T? {
    try readFlag() ? try body(&self) : nil
  }

  func requireEnd() throws(StoreError) {
    guard offset == bytes.count else { throw damaged }
  }
}

/// Which of two comes first, byte for byte: below 0 the first, above 0 the second, 0: they are equal.
func byteOrder(_ first: RawSpan, _ second: RawSpan) -> Int {
  let order = first.withUnsafeBytes { first in
    second.withUnsafeBytes { second in
      guard let one = first.baseAddress, let other = second.baseAddress else { return 0 }
      return Int(memcmp(one, other, min(first.count, second.count)))
    }
  }
  return order == 0 ? first.byteCount - second.byteCount : order
}

/// Times are stored as whole milliseconds. The nearest: a time that was read and is written again, as
/// with each change of an outbox's entry, stays the same.
extension Date {
  /// Since 1970; a time that has no such number is the nearest one that has.
  var storedMilliseconds: UInt64 {
    let milliseconds = (timeIntervalSince1970 * 1_000).rounded()
    return milliseconds > 0 ? UInt64(min(milliseconds, 0x1p63)) : 0
  }

  init(storedMilliseconds: UInt64) {
    self.init(timeIntervalSince1970: Double(storedMilliseconds) / 1_000)
  }

  /// As it is when it was stored and read.
  var asStored: Date { Date(storedMilliseconds: storedMilliseconds) }
}

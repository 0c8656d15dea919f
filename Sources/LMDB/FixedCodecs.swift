public import Foundation

/// A codec of integers as big-endian bytes: byte order is number order.
///
/// Signed integers are stored with their sign bit flipped, so that -1 sorts before 0. Every key of a
/// table has the width of its type; a table of `UInt32` keys is no table of `UInt64` keys. Unlike
/// `MDB_INTEGERKEY` the files read the same on every machine and keys can be combined.
public enum IntegerCodec<Integer: FixedWidthInteger & BitwiseCopyable & Sendable>: KeyCodec,
  ValueCodec
{
  /// The stored form: big-endian, the sign bit of a signed type flipped.
  @inlinable
  static func stored(_ value: Integer) -> Integer {
    (Integer.isSigned ? value ^ Integer.min : value).bigEndian
  }
  /// Appends the integer's bytes.
  @inlinable
  public static func encode(_ key: Integer, into buffer: inout KeyBuffer) {
    withEncodedKey(key) { buffer.append($0) }
  }
  /// Lends the integer's bytes.
  /// - Throws: what `body` throws.
  @inlinable
  public static func withEncodedKey<R, E: Error>(
    _ key: Integer, _ body: (RawSpan) throws(E) -> R
  ) throws(E) -> R {
    let bytes: InlineArray<1, Integer> = [stored(key)]
    return try body(unsafe bytes.span.bytes)
  }
  /// Lends the integer's bytes.
  /// - Throws: what `body` throws.
  @inlinable
  public static func withEncoded<R>(
    _ value: Integer, _ body: (RawSpan) throws(LMDBError) -> R
  ) throws(LMDBError) -> R { try withEncodedKey(value, body) }
  /// Reads the integer.
  /// - Throws: `badForm` when there are not as many bytes as the type has.
  @inlinable
  public static func decode(_ bytes: RawSpan) throws(LMDBError) -> Integer {
    guard bytes.byteCount == MemoryLayout<Integer>.size else {
      throw LMDBError(
        .badForm, operation: "decode", detail: "an integer of \(bytes.byteCount) bytes")
    }
    let value = bytes.loadBigEndian(Integer.self)
    return Integer.isSigned ? value ^ Integer.min : value
  }
}

/// An unsigned 8-bit integer, 1 byte.
public typealias UInt8Codec = IntegerCodec<UInt8>
/// An unsigned 16-bit integer, 2 bytes big-endian: byte order is number order.
public typealias UInt16Codec = IntegerCodec<UInt16>
/// An unsigned 32-bit integer, 4 bytes big-endian: byte order is number order.
public typealias UInt32Codec = IntegerCodec<UInt32>
/// An unsigned 64-bit integer, 8 bytes big-endian: byte order is number order.
public typealias UInt64Codec = IntegerCodec<UInt64>
/// A signed 8-bit integer, 1 byte: byte order is number order.
public typealias Int8Codec = IntegerCodec<Int8>
/// A signed 16-bit integer, 2 bytes: byte order is number order.
public typealias Int16Codec = IntegerCodec<Int16>
/// A signed 32-bit integer, 4 bytes: byte order is number order.
public typealias Int32Codec = IntegerCodec<Int32>
/// A signed 64-bit integer, 8 bytes: byte order is number order.
public typealias Int64Codec = IntegerCodec<Int64>

/// A floating-point number, 8 bytes: byte order is number order, from -infinity over -0, 0 and
/// infinity to NaN, as `isTotallyOrdered` has it.
public enum DoubleCodec: KeyCodec, ValueCodec {
  @inlinable
  static func stored(_ value: Double) -> UInt64 {
    let bits = value.bitPattern
    return bits >> 63 == 0 ? bits ^ (1 << 63) : ~bits
  }
  /// Appends 8 bytes.
  @inlinable
  public static func encode(_ key: Double, into buffer: inout KeyBuffer) {
    buffer.append(bigEndian: stored(key))
  }
  /// Lends 8 bytes.
  /// - Throws: what `body` throws.
  @inlinable
  public static func withEncodedKey<R, E: Error>(
    _ key: Double, _ body: (RawSpan) throws(E) -> R
  ) throws(E) -> R { try UInt64Codec.withEncodedKey(stored(key), body) }
  /// Lends 8 bytes.
  /// - Throws: what `body` throws.
  @inlinable
  public static func withEncoded<R>(
    _ value: Double, _ body: (RawSpan) throws(LMDBError) -> R
  ) throws(LMDBError) -> R { try withEncodedKey(value, body) }
  /// Reads 8 bytes.
  /// - Throws: `badForm` when there are not 8 bytes.
  @inlinable
  public static func decode(_ bytes: RawSpan) throws(LMDBError) -> Double {
    let bits = try UInt64Codec.decode(bytes)
    return Double(bitPattern: bits >> 63 == 1 ? bits ^ (1 << 63) : ~bits)
  }
}

/// A UUID, its 16 bytes.
public enum UUIDCodec: KeyCodec, ValueCodec {
  /// Appends 16 bytes.
  public static func encode(_ key: UUID, into buffer: inout KeyBuffer) { buffer.append(key) }
  /// Lends 16 bytes.
  /// - Throws: what `body` throws.
  @inlinable
  public static func withEncodedKey<R, E: Error>(
    _ key: UUID, _ body: (RawSpan) throws(E) -> R
  ) throws(E) -> R {
    let bytes: InlineArray<1, uuid_t> = [key.uuid]
    return try body(unsafe bytes.span.bytes)
  }
  /// Lends 16 bytes.
  /// - Throws: what `body` throws.
  @inlinable
  public static func withEncoded<R>(
    _ value: UUID, _ body: (RawSpan) throws(LMDBError) -> R
  ) throws(LMDBError) -> R {
    let bytes: InlineArray<1, uuid_t> = [value.uuid]
    return try body(unsafe bytes.span.bytes)
  }
  /// Reads 16 bytes.
  /// - Throws: `badForm` when there are not 16 bytes.
  public static func decode(_ bytes: RawSpan) throws(LMDBError) -> UUID {
    guard bytes.byteCount == 16 else {
      throw LMDBError(.badForm, operation: "decode", detail: "a UUID of \(bytes.byteCount) bytes")
    }
    return bytes.loadUUID()
  }
}

import Foundation

/// Nothing: for a table that is a set of keys. The stored value has 0 bytes.
public enum EmptyCodec: ValueCodec {
  /// Lends no bytes.
  /// - Throws: what `body` throws.
  @inlinable
  public static func withEncoded<R>(
    _ value: Void, _ body: (RawSpan) throws(LMDBError) -> R
  ) throws(LMDBError) -> R { try body(RawSpan()) }
  /// Reads nothing.
  /// - Throws: `badForm` when bytes are stored.
  @inlinable
  public static func decode(_ bytes: RawSpan) throws(LMDBError) {
    guard bytes.isEmpty else {
      throw LMDBError(
        .badForm, operation: "decode", detail: "\(bytes.byteCount) bytes where none belong")
    }
  }
}

/// Bytes of one length, without an array: for hashes and other identifiers.
public enum InlineBytesCodec<let count: Int>: FixedKeyCodec, BorrowingValueCodec {
  /// The length in bytes.
  @inlinable
  public static var byteCount: Int { count }
  /// Appends the bytes.
  @inlinable
  public static func encode(_ key: InlineArray<count, UInt8>, into buffer: inout KeyBuffer) {
    buffer.append(unsafe key.span.bytes)
  }
  /// Lends the bytes as they are.
  /// - Throws: what `body` throws.
  @inlinable
  public static func withEncodedKey<R, E: Error>(
    _ key: InlineArray<count, UInt8>, _ body: (RawSpan) throws(E) -> R
  ) throws(E) -> R { try body(unsafe key.span.bytes) }
  /// Lends the bytes as they are.
  /// - Throws: what `body` throws.
  @inlinable
  public static func withEncoded<R>(
    _ value: InlineArray<count, UInt8>, _ body: (RawSpan) throws(LMDBError) -> R
  ) throws(LMDBError) -> R { try body(unsafe value.span.bytes) }
  /// Copies the bytes.
  /// - Throws: `badForm` when there are more or fewer.
  @inlinable
  public static func decode(_ bytes: RawSpan) throws(LMDBError) -> InlineArray<count, UInt8> {
    let bytes = try view(bytes)
    return InlineArray { bytes.loadBigEndian(at: $0) }
  }
  /// Lends the stored bytes.
  /// - Throws: `badForm` when there are more or fewer.
  @inlinable
  @_lifetime(copy bytes)
  public static func view(_ bytes: RawSpan) throws(LMDBError) -> RawSpan {
    guard bytes.byteCount == count else {
      throw LMDBError(
        .badForm, operation: "decode", detail: "\(bytes.byteCount) bytes instead of \(count)")
    }
    return bytes
  }
}

/// A `Codable` value as JSON.
///
/// Convenient, and slow beside a codec of one's own: coding costs microseconds per value and allocates.
/// Keys are sorted, so equal values have equal bytes. ``LazyCodec`` around it decodes on demand.
public enum JSONCodec<Value: Codable>: ValueCodec {
  /// Encodes the value and lends its bytes.
  /// - Throws: `badForm` when it cannot be encoded, as a number that is not finite.
  public static func withEncoded<R>(
    _ value: Value, _ body: (RawSpan) throws(LMDBError) -> R
  ) throws(LMDBError) -> R {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    let data: Data
    do {
      data = try encoder.encode(value)
    } catch {
      // The coder's own error quotes the value.
      throw LMDBError(.badForm, operation: "encode", detail: "a \(Value.self) as JSON")
    }
    return try body(unsafe data.span.bytes)
  }
  /// Decodes the value.
  /// - Throws: `badForm` when the bytes are no such JSON.
  public static func decode(_ bytes: RawSpan) throws(LMDBError) -> Value {
    do {
      return try JSONDecoder().decode(Value.self, from: bytes.copiedData())
    } catch {
      throw LMDBError(.badForm, operation: "decode", detail: "a \(Value.self) from JSON")
    }
  }
}

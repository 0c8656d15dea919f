public import Foundation

/// How a table's keys become bytes. Byte order is the table's order, so a codec keeps the value's.
public protocol KeyCodec: Sendable {
  /// What the caller gives and gets.
  associatedtype Key
  /// Appends the key's bytes, 1 to 511 in all.
  static func encode(_ key: Key, into buffer: inout KeyBuffer)
  /// Reads a stored key.
  /// - Throws: `badForm` when the bytes are no such key.
  static func decode(_ bytes: RawSpan) throws(LMDBError) -> Key
}

/// How a table's values become bytes.
public protocol ValueCodec: Sendable {
  /// What the caller gives and gets.
  associatedtype Value
  /// Lends the value's bytes to `body`.
  static func withEncoded<R>(
    _ value: Value, _ body: (RawSpan) throws(LMDBError) -> R
  ) throws(LMDBError) -> R
  /// Reads a stored value.
  /// - Throws: `badForm` when the bytes are no such value.
  static func decode(_ bytes: RawSpan) throws(LMDBError) -> Value
}

/// A key under construction, on the stack; at most 511 bytes, LMDB's limit.
public struct KeyBuffer {
  /// The longest key that LMDB stores. Corresponds to `mdb_env_get_maxkeysize`.
  public static let byteCountMax = 511

  private var storage = InlineArray<512, UInt8>(repeating: 0)
  /// How many bytes were appended; more than 511 is refused by the call that uses the key.
  public private(set) var byteCount = 0

  /// An empty key.
  public init() {}

  /// Appends bytes.
  public mutating func append(_ bytes: [UInt8]) {
    append(unsafe bytes.span.bytes)
  }

  /// Appends bytes.
  public mutating func append(_ bytes: RawSpan) {
    let room = Self.byteCountMax - min(byteCount, Self.byteCountMax)
    let count = min(bytes.byteCount, room)
    if count > 0 {
      let start = byteCount
      var target = storage.mutableSpan
      // SAFETY: `count` is at most the room behind `start`, and at most what the span has.
      unsafe target.withUnsafeMutableBytes { target in
        unsafe bytes.withUnsafeBytes { source in
          unsafe UnsafeMutableRawBufferPointer(rebasing: target[start..<start + count])
            .copyMemory(from: UnsafeRawBufferPointer(rebasing: source[0..<count]))
        }
      }
    }
    byteCount += bytes.byteCount
  }

  /// Appends one byte.
  public mutating func append(_ byte: UInt8) {
    if byteCount < Self.byteCountMax { storage[byteCount] = byte }
    byteCount += 1
  }

  /// Appends an unsigned integer, big-endian, so that byte order is number order.
  public mutating func append(bigEndian value: UInt64) {
    let bytes: InlineArray<1, UInt64> = [value.bigEndian]
    append(unsafe bytes.span.bytes)
  }

  /// Appends an unsigned integer, big-endian, so that byte order is number order.
  public mutating func append(bigEndian value: UInt16) {
    append(UInt8(truncatingIfNeeded: value >> 8))
    append(UInt8(truncatingIfNeeded: value))
  }

  /// Appends a UUID's 16 bytes.
  public mutating func append(_ uuid: UUID) {
    let bytes: InlineArray<1, uuid_t> = [uuid.uuid]
    append(unsafe bytes.span.bytes)
  }

  var bytes: RawSpan {
    @_lifetime(borrow self)
    get { unsafe storage.span.bytes.extracting(0..<min(byteCount, Self.byteCountMax)) }
  }
}

extension RawSpan {
  /// A copy of the bytes.
  public func copiedBytes() -> [UInt8] {
    // SAFETY: the buffer is read within the closure only.
    unsafe withUnsafeBytes { unsafe Array($0) }
  }

  /// A copy of the bytes.
  public func copiedData() -> Data {
    // SAFETY: the buffer is read within the closure only.
    unsafe withUnsafeBytes { unsafe Data($0) }
  }

  /// The unsigned integer stored big-endian at an offset.
  /// - Precondition: it lies within the span.
  public func loadBigEndian<T: FixedWidthInteger & BitwiseCopyable>(
    _ type: T.Type = T.self, at offset: Int = 0
  ) -> T {
    // SAFETY: any bit pattern is an integer; the span's own check holds the bounds.
    T(bigEndian: unsafe unsafeLoadUnaligned(fromByteOffset: offset, as: type))
  }

  /// The UUID stored at an offset.
  /// - Precondition: 16 bytes lie within the span.
  public func loadUUID(at offset: Int = 0) -> UUID {
    // SAFETY: any 16 bytes are a UUID; the span's own check holds the bounds.
    UUID(uuid: unsafe unsafeLoadUnaligned(fromByteOffset: offset, as: uuid_t.self))
  }
}

/// Bytes as they are, copied on reading.
public enum BytesCodec: KeyCodec, ValueCodec {
  /// Appends the bytes.
  public static func encode(_ key: [UInt8], into buffer: inout KeyBuffer) { buffer.append(key) }
  /// Lends the bytes.
  @inlinable
  public static func withEncoded<R>(
    _ value: [UInt8], _ body: (RawSpan) throws(LMDBError) -> R
  ) throws(LMDBError) -> R { try body(unsafe value.span.bytes) }
  /// Copies the bytes.
  public static func decode(_ bytes: RawSpan) throws(LMDBError) -> [UInt8] { bytes.copiedBytes() }
}

/// `Data` as it is, copied on reading.
public enum DataCodec: ValueCodec {
  /// Lends the bytes.
  @inlinable
  public static func withEncoded<R>(
    _ value: Data, _ body: (RawSpan) throws(LMDBError) -> R
  ) throws(LMDBError) -> R { try body(unsafe value.span.bytes) }
  /// Copies the bytes.
  public static func decode(_ bytes: RawSpan) throws(LMDBError) -> Data { bytes.copiedData() }
}

/// Text as its UTF-8 bytes; the order is that of the bytes, not of a language.
public enum TextCodec: KeyCodec, ValueCodec {
  /// Appends the UTF-8 bytes.
  public static func encode(_ key: String, into buffer: inout KeyBuffer) {
    buffer.append(Array(key.utf8))
  }
  /// Lends the UTF-8 bytes.
  @inlinable
  public static func withEncoded<R>(
    _ value: String, _ body: (RawSpan) throws(LMDBError) -> R
  ) throws(LMDBError) -> R { try body(unsafe Array(value.utf8).span.bytes) }
  /// Copies the text.
  /// - Throws: `badForm` when the bytes are not UTF-8.
  public static func decode(_ bytes: RawSpan) throws(LMDBError) -> String {
    guard let text = String(validating: bytes.copiedBytes(), as: UTF8.self) else {
      throw LMDBError(.badForm, operation: "decode", detail: "stored text is not UTF-8")
    }
    return text
  }
}

/// An unsigned 64-bit integer, 8 bytes big-endian: byte order is number order.
public enum UInt64Codec: KeyCodec, ValueCodec {
  /// Appends 8 bytes.
  public static func encode(_ key: UInt64, into buffer: inout KeyBuffer) {
    buffer.append(bigEndian: key)
  }
  /// Lends 8 bytes.
  @inlinable
  public static func withEncoded<R>(
    _ value: UInt64, _ body: (RawSpan) throws(LMDBError) -> R
  ) throws(LMDBError) -> R {
    let bytes: InlineArray<1, UInt64> = [value.bigEndian]
    return try body(unsafe bytes.span.bytes)
  }
  /// Reads 8 bytes.
  public static func decode(_ bytes: RawSpan) throws(LMDBError) -> UInt64 {
    guard bytes.byteCount == 8 else {
      throw LMDBError(
        .badForm, operation: "decode", detail: "an integer of \(bytes.byteCount) bytes")
    }
    return bytes.loadBigEndian()
  }
}

/// A UUID, its 16 bytes.
public enum UUIDCodec: KeyCodec, ValueCodec {
  /// Appends 16 bytes.
  public static func encode(_ key: UUID, into buffer: inout KeyBuffer) { buffer.append(key) }
  /// Lends 16 bytes.
  @inlinable
  public static func withEncoded<R>(
    _ value: UUID, _ body: (RawSpan) throws(LMDBError) -> R
  ) throws(LMDBError) -> R {
    let bytes: InlineArray<1, uuid_t> = [value.uuid]
    return try body(unsafe bytes.span.bytes)
  }
  /// Reads 16 bytes.
  public static func decode(_ bytes: RawSpan) throws(LMDBError) -> UUID {
    guard bytes.byteCount == 16 else {
      throw LMDBError(.badForm, operation: "decode", detail: "a UUID of \(bytes.byteCount) bytes")
    }
    return bytes.loadUUID()
  }
}

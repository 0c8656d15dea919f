public import Foundation

/// How a table's keys become bytes. Byte order is the table's order, so a codec keeps the value's.
public protocol KeyCodec: Sendable {
  /// What the caller gives and gets.
  associatedtype Key
  /// Appends the key's bytes, 1 to 511 in all.
  static func encode(_ key: Key, into buffer: inout KeyBuffer)
  /// Lends the key's bytes to `body`. By default from a ``KeyBuffer``; a codec whose bytes exist
  /// already lends those and saves a copy.
  /// - Throws: what `body` throws.
  static func withEncodedKey<R, E: Error>(
    _ key: Key, _ body: (RawSpan) throws(E) -> R
  ) throws(E) -> R
  /// Reads a stored key.
  /// - Throws: `badForm` when the bytes are no such key.
  static func decode(_ bytes: RawSpan) throws(LMDBError) -> Key
}

extension KeyCodec {
  /// Encodes into a buffer on the stack and lends that.
  /// - Throws: what `body` throws.
  @inlinable
  public static func withEncodedKey<R, E: Error>(
    _ key: Key, _ body: (RawSpan) throws(E) -> R
  ) throws(E) -> R {
    var buffer = KeyBuffer()
    encode(key, into: &buffer)
    return try body(buffer.bytes)
  }
}

/// How a table's values become bytes.
public protocol ValueCodec: Sendable {
  /// What the caller gives and gets.
  associatedtype Value
  /// Lends the value's bytes to `body`.
  /// - Throws: what `body` throws.
  static func withEncoded<R>(
    _ value: Value, _ body: (RawSpan) throws(LMDBError) -> R
  ) throws(LMDBError) -> R
  /// Reads a stored value.
  /// - Throws: `badForm` when the bytes are no such value.
  static func decode(_ bytes: RawSpan) throws(LMDBError) -> Value
}

/// A value codec that can also lend a view of the stored bytes, which copies nothing.
///
/// A view lives as long as the bytes it was made of; the compiler keeps it within the transaction.
/// ``Transaction/view(of:in:)`` gives one.
public protocol BorrowingValueCodec: ValueCodec {
  /// What reads the stored bytes in place.
  associatedtype View: ~Escapable
  /// Makes the view.
  /// - Throws: `badForm` when the bytes are no such value.
  @_lifetime(copy bytes)
  static func view(_ bytes: RawSpan) throws(LMDBError) -> View
}

/// Bytes as they are, copied on reading; a view lends them.
public enum BytesCodec: KeyCodec, BorrowingValueCodec {
  /// Appends the bytes.
  public static func encode(_ key: [UInt8], into buffer: inout KeyBuffer) { buffer.append(key) }
  /// Lends the bytes as they are.
  /// - Throws: what `body` throws.
  @inlinable
  public static func withEncodedKey<R, E: Error>(
    _ key: [UInt8], _ body: (RawSpan) throws(E) -> R
  ) throws(E) -> R { try body(unsafe key.span.bytes) }
  /// Lends the bytes.
  /// - Throws: what `body` throws.
  @inlinable
  public static func withEncoded<R>(
    _ value: [UInt8], _ body: (RawSpan) throws(LMDBError) -> R
  ) throws(LMDBError) -> R { try body(unsafe value.span.bytes) }
  /// Copies the bytes.
  /// - Throws: nothing; any bytes will do.
  public static func decode(_ bytes: RawSpan) throws(LMDBError) -> [UInt8] { bytes.copiedBytes() }
  /// Lends the stored bytes.
  /// - Throws: nothing; any bytes will do.
  @inlinable
  @_lifetime(copy bytes)
  public static func view(_ bytes: RawSpan) throws(LMDBError) -> RawSpan { bytes }
}

/// `Data` as it is, copied on reading; a view lends its bytes.
public enum DataCodec: KeyCodec, BorrowingValueCodec {
  /// Appends the bytes.
  public static func encode(_ key: Data, into buffer: inout KeyBuffer) {
    buffer.append(unsafe key.span.bytes)
  }
  /// Lends the bytes.
  /// - Throws: what `body` throws.
  @inlinable
  public static func withEncoded<R>(
    _ value: Data, _ body: (RawSpan) throws(LMDBError) -> R
  ) throws(LMDBError) -> R { try body(unsafe value.span.bytes) }
  /// Copies the bytes.
  /// - Throws: nothing; any bytes will do.
  public static func decode(_ bytes: RawSpan) throws(LMDBError) -> Data { bytes.copiedData() }
  /// Lends the stored bytes.
  /// - Throws: nothing; any bytes will do.
  @inlinable
  @_lifetime(copy bytes)
  public static func view(_ bytes: RawSpan) throws(LMDBError) -> RawSpan { bytes }
}

/// Text as its UTF-8 bytes; the order is that of the bytes, not of a language.
public enum TextCodec: KeyCodec, ValueCodec {
  /// Appends the UTF-8 bytes.
  public static func encode(_ key: String, into buffer: inout KeyBuffer) {
    buffer.append(unsafe key.utf8.span.bytes)
  }
  /// Lends the UTF-8 bytes.
  /// - Throws: what `body` throws.
  @inlinable
  public static func withEncodedKey<R, E: Error>(
    _ key: String, _ body: (RawSpan) throws(E) -> R
  ) throws(E) -> R { try body(unsafe key.utf8.span.bytes) }
  /// Lends the UTF-8 bytes.
  /// - Throws: what `body` throws.
  @inlinable
  public static func withEncoded<R>(
    _ value: String, _ body: (RawSpan) throws(LMDBError) -> R
  ) throws(LMDBError) -> R { try body(unsafe value.utf8.span.bytes) }
  /// Copies the text.
  /// - Throws: `badForm` when the bytes are not UTF-8.
  public static func decode(_ bytes: RawSpan) throws(LMDBError) -> String {
    guard let text = String(validating: bytes.copiedBytes(), as: UTF8.self) else {
      throw LMDBError(.badForm, operation: "decode", detail: "stored text is not UTF-8")
    }
    return text
  }
}

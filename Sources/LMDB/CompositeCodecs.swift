/// A key codec whose bytes say by themselves where they end, so that another key can follow.
///
/// Integers, UUIDs and fixed bytes do; ``TextCodec`` and ``BytesCodec`` write an end mark.
public protocol KeyComponentCodec: KeyCodec {
  /// Appends the key so that whatever follows it, the order stays that of the keys.
  static func encodeComponent(_ key: Key, into buffer: inout KeyBuffer)
  /// Reads the key that begins at `offset` and moves `offset` behind it.
  /// - Throws: `badForm` when no such key is there.
  static func decodeComponent(
    _ bytes: RawSpan, at offset: inout Int
  ) throws(LMDBError) -> Key
}

/// A codec whose keys all have the same size.
public protocol FixedKeyCodec: KeyComponentCodec {
  /// The size in bytes.
  static var byteCount: Int { get }
}

extension FixedKeyCodec {
  /// Appends the key as it is.
  @inlinable
  public static func encodeComponent(_ key: Key, into buffer: inout KeyBuffer) {
    encode(key, into: &buffer)
  }

  /// Reads the key's bytes.
  /// - Throws: `badForm` when no such key is there.
  @inlinable
  public static func decodeComponent(
    _ bytes: RawSpan, at offset: inout Int
  ) throws(LMDBError) -> Key {
    guard offset >= 0, byteCount <= bytes.byteCount - offset else {
      throw LMDBError(.badForm, operation: "decode", detail: "a key is cut short")
    }
    let part = bytes.extracting(offset..<offset + byteCount)
    offset += byteCount
    return try decode(part)
  }
}

extension IntegerCodec: FixedKeyCodec {
  /// The integer's size in bytes.
  @inlinable
  public static var byteCount: Int { MemoryLayout<Integer>.size }
}

extension DoubleCodec: FixedKeyCodec {
  /// 8 bytes.
  public static var byteCount: Int { 8 }
}

extension UUIDCodec: FixedKeyCodec {
  /// 16 bytes.
  public static var byteCount: Int { 16 }
}

// Bytes of any length within a composite key: a zero byte becomes 0x00 0xff, the end is 0x00 0x00.
// So a shorter key sorts before what it begins, whatever follows either.

extension BytesCodec: KeyComponentCodec {
  /// Appends the bytes and an end mark; each zero byte takes two.
  public static func encodeComponent(_ key: [UInt8], into buffer: inout KeyBuffer) {
    buffer.appendDelimited(unsafe key.span.bytes)
  }

  /// Reads the bytes up to their end mark.
  /// - Throws: `badForm` when no such key is there.
  public static func decodeComponent(
    _ bytes: RawSpan, at offset: inout Int
  ) throws(LMDBError) -> [UInt8] {
    try bytes.delimitedBytes(at: &offset)
  }
}

extension TextCodec: KeyComponentCodec {
  /// Appends the UTF-8 bytes and an end mark; each zero byte takes two.
  public static func encodeComponent(_ key: String, into buffer: inout KeyBuffer) {
    buffer.appendDelimited(unsafe key.utf8.span.bytes)
  }

  /// Reads the text up to its end mark.
  /// - Throws: `badForm` when no such key is there.
  public static func decodeComponent(
    _ bytes: RawSpan, at offset: inout Int
  ) throws(LMDBError) -> String {
    let text = try bytes.delimitedBytes(at: &offset)
    return try decode(unsafe text.span.bytes)
  }
}

extension KeyBuffer {
  fileprivate mutating func appendDelimited(_ bytes: RawSpan) {
    for offset in 0..<bytes.byteCount {
      // SAFETY: the offset lies within the span.
      let byte = unsafe bytes.unsafeLoad(fromByteOffset: offset, as: UInt8.self)
      append(byte)
      if byte == 0 { append(0xFF as UInt8) }
    }
    append(0 as UInt8)
    append(0 as UInt8)
  }
}

extension RawSpan {
  fileprivate func delimitedBytes(at offset: inout Int) throws(LMDBError) -> [UInt8] {
    var found: [UInt8] = []
    while offset < byteCount {
      let byte = loadBigEndian(UInt8.self, at: offset)
      offset += 1
      if byte == 0 {
        // Nothing where the mark should be reads as a bad mark.
        let mark = offset < byteCount ? loadBigEndian(UInt8.self, at: offset) : 1
        offset += 1
        if mark == 0 { return found }
        guard mark == 0xFF else { break }
      }
      found.append(byte)
    }
    throw LMDBError(.badForm, operation: "decode", detail: "a key without its end mark")
  }
}

/// Two keys as one, ordered by the first and then by the second.
///
/// The second is stored as it is, so a range over it runs as in a table of its own. Three keys are a
/// pair whose second is a pair.
public enum PairCodec<First: KeyComponentCodec, Second: KeyCodec>: KeyCodec {
  /// Both keys.
  public typealias Key = (First.Key, Second.Key)

  /// Appends both.
  @inlinable
  public static func encode(_ key: Key, into buffer: inout KeyBuffer) {
    First.encodeComponent(key.0, into: &buffer)
    Second.encode(key.1, into: &buffer)
  }

  /// Reads both.
  /// - Throws: `badForm` when the bytes are no such pair.
  @inlinable
  public static func decode(_ bytes: RawSpan) throws(LMDBError) -> Key {
    var offset = 0
    let first = try First.decodeComponent(bytes, at: &offset)
    return (first, try Second.decode(bytes.extracting(offset..<bytes.byteCount)))
  }

  /// Every key with that first one.
  @inlinable
  public static func range(first: First.Key) -> KeyRange<Key> {
    var buffer = KeyBuffer()
    First.encodeComponent(first, into: &buffer)
    return .encodedPrefix(buffer.bytes.copiedBytes())
  }
}

extension PairCodec: KeyComponentCodec where Second: KeyComponentCodec {
  /// Appends both so that another key can follow.
  @inlinable
  public static func encodeComponent(_ key: Key, into buffer: inout KeyBuffer) {
    First.encodeComponent(key.0, into: &buffer)
    Second.encodeComponent(key.1, into: &buffer)
  }

  /// Reads both.
  /// - Throws: `badForm` when no such key is there.
  @inlinable
  public static func decodeComponent(
    _ bytes: RawSpan, at offset: inout Int
  ) throws(LMDBError) -> Key {
    let first = try First.decodeComponent(bytes, at: &offset)
    return (first, try Second.decodeComponent(bytes, at: &offset))
  }
}

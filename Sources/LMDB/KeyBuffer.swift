public import Foundation

/// A key under construction, on the stack; at most 511 bytes, LMDB's limit.
public struct KeyBuffer {
  /// The longest key that LMDB stores. Corresponds to `mdb_env_get_maxkeysize`.
  public static let byteCountMax = 511

  // One byte more than a key may have, so that a longer one is seen to be too long.
  private static let capacity = 512
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
    let room = Self.capacity - min(byteCount, Self.capacity)
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
    if byteCount < Self.capacity { storage[byteCount] = byte }
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

  /// The key's bytes; of a key that is too long, one more than any table takes.
  public var bytes: RawSpan {
    @_lifetime(borrow self)
    get { unsafe storage.span.bytes.extracting(0..<min(byteCount, Self.capacity)) }
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
    // As two integers: Swift 6.3 reads a tuple of 16 bytes wrongly, when it optimises, from an array that
    // it keeps on the stack.
    // SAFETY: any 16 bytes are a UUID; the span's own check holds the bounds.
    let halves = unsafe (
      unsafeLoadUnaligned(fromByteOffset: offset, as: UInt64.self),
      unsafeLoadUnaligned(fromByteOffset: offset + 8, as: UInt64.self)
    )
    return UUID(uuid: unsafe unsafeBitCast(halves, to: uuid_t.self))
  }
}

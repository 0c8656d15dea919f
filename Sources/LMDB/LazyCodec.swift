/// Decodes later: a value comes as its bytes with their codec, and is decoded when it is asked for.
///
/// A scan that decides by keys, or by a few values, pays for those only. The ``View`` copies nothing
/// and lives within the transaction; the ``Value`` is a copy of the bytes and may be kept.
public enum LazyCodec<Base: ValueCodec>: BorrowingValueCodec {
  /// Stored bytes in place, not decoded yet.
  public struct View: ~Escapable {
    /// The stored bytes.
    public let bytes: RawSpan

    @usableFromInline
    @_lifetime(copy bytes)
    init(_ bytes: RawSpan) { self.bytes = bytes }

    /// Decodes them.
    /// - Throws: `badForm` when they are no such value.
    @inlinable
    public func decoded() throws(LMDBError) -> Base.Value { try Base.decode(bytes) }
  }

  /// A copy of stored bytes, not decoded yet.
  public struct Value: Sendable {
    /// The stored bytes.
    public let bytes: [UInt8]

    /// Takes bytes that `Base` can decode.
    public init(bytes: [UInt8]) { self.bytes = bytes }

    /// Encodes a value.
    /// - Throws: what the codec throws.
    @inlinable
    public init(_ value: Base.Value) throws(LMDBError) {
      bytes = try Base.withEncoded(value) { (bytes) throws(LMDBError) in bytes.copiedBytes() }
    }

    /// Decodes them.
    /// - Throws: `badForm` when they are no such value.
    @inlinable
    public func decoded() throws(LMDBError) -> Base.Value {
      try Base.decode(unsafe bytes.span.bytes)
    }
  }

  /// Lends the bytes.
  /// - Throws: what `body` throws.
  @inlinable
  public static func withEncoded<R>(
    _ value: Value, _ body: (RawSpan) throws(LMDBError) -> R
  ) throws(LMDBError) -> R { try body(unsafe value.bytes.span.bytes) }

  /// Copies the bytes.
  /// - Throws: nothing; any bytes will do.
  @inlinable
  public static func decode(_ bytes: RawSpan) throws(LMDBError) -> Value {
    Value(bytes: bytes.copiedBytes())
  }

  /// Lends the stored bytes.
  /// - Throws: nothing; any bytes will do.
  @inlinable
  @_lifetime(copy bytes)
  public static func view(_ bytes: RawSpan) throws(LMDBError) -> View { View(bytes) }
}

/// A record's ID within its account: 1 to 400 bytes of UTF-8, compared byte for byte.
///
/// A literal may be written where one is expected; its length is checked where it enters (enqueue,
/// a page, a push), as a typed error and not as a trap. (Contract section 7.)
public struct RecordID: Hashable, Sendable, ExpressibleByStringInterpolation {
  /// The longest ID, in bytes.
  public static let byteCountMax = 400

  /// The ID's UTF-8 bytes.
  public let bytes: [UInt8]

  /// Takes bytes that are 1 to 400 bytes of UTF-8.
  /// - Throws: ``IdentifierError`` naming what is wrong with them.
  public init(bytes: some Collection<UInt8>) throws(IdentifierError) {
    self.bytes = try validatedIdentifier(bytes, kind: .record, byteCountMax: RecordID.byteCountMax)
  }

  /// Takes bytes that were validated when they were stored.
  package init(uncheckedBytes bytes: [UInt8]) {
    self.bytes = bytes
  }

  /// Takes the ID's text, byte for byte as it is; ``validate()`` is called where it enters.
  public init(_ text: String) {
    bytes = Array(text.utf8)
  }

  /// Takes a literal; see ``init(_:)``.
  public init(stringLiteral value: String) {
    self.init(value)
  }

  /// Checks the limits.
  /// - Throws: ``IdentifierError`` when there are 0 or more than 400 bytes.
  public func validate() throws(IdentifierError) {
    try requireIdentifier(bytes, kind: .record, byteCountMax: RecordID.byteCountMax)
  }

  /// The ID as text, for a person to read. Never compare it: compare the `RecordID`.
  public var text: String { String(decoding: bytes, as: UTF8.self) }
}

extension RecordID: Comparable {
  /// Byte order, the order of the tables on disk.
  public static func < (left: RecordID, right: RecordID) -> Bool {
    left.bytes.lexicographicallyPrecedes(right.bytes)
  }
}

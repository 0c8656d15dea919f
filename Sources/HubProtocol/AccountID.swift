/// A stable account ID at one hub: 1 to 256 bytes of UTF-8, compared byte for byte.
///
/// Two IDs are equal only if their bytes are. `String` is not used for comparison anywhere, since
/// its `==` is canonical equivalence and would let two accounts be one. (Contract sections 2, 7.)
public struct AccountID: Hashable, Sendable {
  /// The longest ID, in bytes.
  public static let byteCountMax = 256

  /// The ID's UTF-8 bytes.
  public let bytes: [UInt8]

  /// Takes the ID's UTF-8 bytes.
  /// - Throws: ``IdentifierError`` when there are 0 or more than 256 bytes, or they are no UTF-8.
  public init(bytes: some Collection<UInt8>) throws(IdentifierError) {
    self.bytes = try validatedIdentifier(
      bytes, kind: .account, byteCountMax: AccountID.byteCountMax)
  }

  /// Takes the ID's text, byte for byte as it is: nothing is trimmed, folded or normalized.
  /// - Throws: ``IdentifierError`` when its UTF-8 form has 0 or more than 256 bytes.
  public init(_ text: String) throws(IdentifierError) {
    try self.init(bytes: Array(text.utf8))
  }

  /// The ID as text, for a person to read. Never compare it: compare the `AccountID`.
  public var text: String { String(decoding: bytes, as: UTF8.self) }
}

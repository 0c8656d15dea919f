/// An account or record ID outside its limits. It names the kind and the length, never the ID.
public struct IdentifierError: Error, Hashable, Sendable, CustomStringConvertible {
  /// Which kind of ID was refused.
  public enum Kind: String, Sendable {
    /// An ``AccountID``.
    case account
    /// A ``RecordID``.
    case record
  }

  /// What was wrong with it.
  public enum Reason: Hashable, Sendable {
    /// It has no bytes.
    case empty
    /// It has more bytes of UTF-8 than its kind may have.
    case tooLong(byteCount: Int, byteCountMax: Int)
    /// Its bytes are no UTF-8.
    case notUTF8
  }

  /// Which kind of ID was refused.
  public let kind: Kind
  /// What was wrong with it.
  public let reason: Reason

  /// One sentence with the remedy.
  public var description: String {
    switch reason {
    case .empty: "the \(kind.rawValue) ID is empty; give it at least 1 byte"
    case .tooLong(let count, let max):
      "the \(kind.rawValue) ID has \(count) bytes of UTF-8; shorten it to at most \(max)"
    case .notUTF8: "the \(kind.rawValue) ID is not valid UTF-8"
    }
  }
}

func validatedIdentifier(
  _ bytes: some Collection<UInt8>, kind: IdentifierError.Kind, byteCountMax: Int
) throws(IdentifierError) -> [UInt8] {
  let copy = Array(bytes)
  try requireIdentifier(copy, kind: kind, byteCountMax: byteCountMax)
  return copy
}

/// Checks an identifier where it lies.
func requireIdentifier(
  _ bytes: [UInt8], kind: IdentifierError.Kind, byteCountMax: Int
) throws(IdentifierError) {
  let count = bytes.count
  guard count > 0 else { throw IdentifierError(kind: kind, reason: .empty) }
  guard count <= byteCountMax else {
    throw IdentifierError(
      kind: kind, reason: .tooLong(byteCount: count, byteCountMax: byteCountMax))
  }
  do {
    _ = try UTF8Span(validating: bytes.span)
  } catch {
    throw IdentifierError(kind: kind, reason: .notUTF8)
  }
}

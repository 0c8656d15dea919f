public import Foundation
public import HubProtocol
public import ProfileStore

/// One change of the hub for the app to save, lent in place: ID and payload are the bytes that were
/// staged or received, and nothing is copied or allocated before it is asked for.
///
/// It cannot be kept beyond the batch, which the compiler checks: take what is needed out of it, or a
/// ``copy()``.
public struct LentChange: ~Escapable {
  /// The bytes of the record's ID, in place. Comparing or binding them needs no ``record``.
  public let id: RawSpan
  /// The payload in place; empty for a deletion, and for a payload of no bytes.
  public let payload: RawSpan
  /// The hub's version. For an inferred deletion: the newest one that was known.
  public let version: UInt64
  /// As in a head of ``ChangePage``.
  private let flags: UInt8

  /// Reads a head of a page, in the form that ``ChangePage`` describes: once for each change of a
  /// replay, so without a call into another module.
  ///
  /// The page's heads were looked at when it was taken: what they name lies within it.
  @inline(__always) @_lifetime(immortal)
  init(_ page: UnsafeRawBufferPointer, _ index: Int, edit: UInt8) {
    let start = 8 + 32 * index
    func number<T: FixedWidthInteger>(_ place: Int, as type: T.Type) -> T {
      T(littleEndian: page.loadUnaligned(fromByteOffset: start + place, as: type))
    }
    let payload = Int(truncatingIfNeeded: number(8, as: UInt64.self))
    let payloadByteCount = Int(number(16, as: UInt32.self))
    let id = Int(number(20, as: UInt32.self))
    let idByteCount = Int(number(24, as: UInt16.self))
    version = number(0, as: UInt64.self)
    self.id = _overrideLifetime(
      RawSpan(_unsafeBytes: UnsafeRawBufferPointer(rebasing: page[id..<id + idByteCount])),
      copying: ())
    self.payload = _overrideLifetime(
      RawSpan(
        _unsafeBytes: UnsafeRawBufferPointer(rebasing: page[payload..<payload + payloadByteCount])),
      copying: ())
    flags = number(26, as: UInt8.self) | edit
  }

  private func has(_ flag: ChangePage.Flags) -> Bool { flags & flag.rawValue != 0 }

  /// The record was deleted.
  public var isDeleted: Bool { has(.isDeleted) }

  /// The deletion follows from a whole scan that did not bring the record; no tombstone said it.
  public var isInferred: Bool { has(.isInferred) }

  /// Whether an edit of this device waits, when the batch was made: keep it, the app's edit is newer.
  public var localEdit: LocalEdit {
    has(.isParked) ? .parked : has(.isPending) ? .pending : .none
  }

  /// What an edit of this record is based on.
  public var base: Mutation.Base { isDeleted ? .mustNotExist : .version(version) }

  /// The record's ID, as a value that may be kept. Cost: one allocation.
  public var record: RecordID { RecordID(copying: id) }

  /// A copy of the payload, which may be kept; nil: the record was deleted.
  public var payloadCopy: Data? {
    isDeleted ? nil : payload.withUnsafeBytes { Data($0) }
  }

  /// Decodes the payload as JSON.
  /// - Throws: `undecodable` for a deletion; what the decoding throws.
  /// - Cost: the payload is copied for the decoder.
  public func decode<Value: Decodable>(_ type: Value.Type = Value.self) throws -> Value {
    guard let payload = payloadCopy else { throw StoreError.deletionHasNoPayload }
    return try JSONDecoder().decode(type, from: payload)
  }

  /// A copy of everything, which may be kept.
  public func copy() -> Change {
    Change(
      record: record, version: version, payload: payloadCopy, isDeleted: isDeleted,
      isInferred: isInferred, localEdit: localEdit)
  }
}

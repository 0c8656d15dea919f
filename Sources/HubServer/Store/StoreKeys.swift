import Foundation
import HubProtocol
import LMDB

// Every key of an account begins with the account's number: 8 bytes, big-endian, never given
// to another account. A fixed length keeps accounts apart whose IDs begin with each other's, and
// leaves room for the longest record ID within LMDB's 511 bytes.
//
//   records   number (8) | record ID (1 to 400)
//   changes   number (8) | version (8)
//   results   number (8) | mutation UUID (16)
//   order     number (8) | version (8)

/// The key of a record's newest version.
enum RecordKeyCodec: KeyCodec {
  struct Key: Sendable {
    var number: UInt64
    /// Empty in a prefix that means every record of the account.
    var id: [UInt8]
  }

  static func encode(_ key: Key, into buffer: inout KeyBuffer) {
    buffer.append(bigEndian: key.number)
    buffer.append(key.id)
  }

  static func decode(_ bytes: RawSpan) throws(LMDBError) -> Key {
    guard bytes.byteCount > 8 else { throw badForm("a record key of \(bytes.byteCount) bytes") }
    return Key(number: bytes.loadBigEndian(), id: bytes.extracting(8...).copiedBytes())
  }
}

/// The same key, with an ID that lies in somebody else's memory, to be used only while that is there.
struct LentRecordKey {
  var number: UInt64
  private let id: UnsafeRawBufferPointer

  /// Lends the key to `body`.
  static func withKey<R>(
    _ number: UInt64, _ id: RawSpan, _ body: (LentRecordKey) throws -> R
  ) rethrows -> R {
    // SAFETY: the span is there until `body` returns, and no caller keeps the value.
    try id.withUnsafeBytes { try body(LentRecordKey(number: number, id: $0)) }
  }

  /// The record's ID.
  var bytes: RawSpan {
    @_lifetime(borrow self)
    get { RawSpan(_unsafeBytes: id) }
  }
}

/// The same keys as ``RecordKeyCodec`` has, without a copy: for looking up and storing, never read.
enum LentRecordKeyCodec: KeyCodec {
  static func encode(_ key: LentRecordKey, into buffer: inout KeyBuffer) {
    buffer.append(bigEndian: key.number)
    buffer.append(key.bytes)
  }

  static func decode(_ bytes: RawSpan) throws(LMDBError) -> LentRecordKey {
    throw badForm("a lent record ID is never read")
  }
}

/// The key of a version within its account.
enum VersionKeyCodec: KeyCodec {
  struct Key: Sendable {
    var number: UInt64
    var version: UInt64
  }

  static func encode(_ key: Key, into buffer: inout KeyBuffer) {
    buffer.append(bigEndian: key.number)
    buffer.append(bigEndian: key.version)
  }

  static func withEncodedKey<R, E: Error>(
    _ key: Key, _ body: (RawSpan) throws(E) -> R
  ) throws(E) -> R {
    let words: InlineArray<2, UInt64> = [key.number.bigEndian, key.version.bigEndian]
    return try body(words.span.bytes)
  }

  static func decode(_ bytes: RawSpan) throws(LMDBError) -> Key {
    guard bytes.byteCount == 16 else {
      throw badForm("a version key of \(bytes.byteCount) bytes")
    }
    return Key(number: bytes.loadBigEndian(), version: bytes.loadBigEndian(at: 8))
  }
}

/// The key of a mutation within its account.
enum MutationKeyCodec: KeyCodec {
  struct Key: Sendable {
    var number: UInt64
    var mutation: UUID
  }

  static func encode(_ key: Key, into buffer: inout KeyBuffer) {
    buffer.append(bigEndian: key.number)
    buffer.append(key.mutation)
  }

  static func withEncodedKey<R, E: Error>(
    _ key: Key, _ body: (RawSpan) throws(E) -> R
  ) throws(E) -> R {
    // SAFETY: any 16 bytes are two integers.
    let mutation = unsafeBitCast(key.mutation.uuid, to: (UInt64, UInt64).self)
    let words: InlineArray<3, UInt64> = [key.number.bigEndian, mutation.0, mutation.1]
    return try body(words.span.bytes)
  }

  static func decode(_ bytes: RawSpan) throws(LMDBError) -> Key {
    guard bytes.byteCount == 24 else {
      throw badForm("a mutation key of \(bytes.byteCount) bytes")
    }
    return Key(number: bytes.loadBigEndian(), mutation: bytes.loadUUID(at: 8))
  }
}

/// Stored bytes that this version of the hub did not write.
func badForm(_ detail: String) -> LMDBError {
  LMDBError(.badForm, operation: "decode", detail: detail)
}

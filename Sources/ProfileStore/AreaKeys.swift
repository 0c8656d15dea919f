import HubProtocol
import LMDB

/// The single values of an area.
enum AreaKey: String {
  /// Format, area ID, creation time.
  case identity
  /// The owner's bytes; absent: unowned.
  case owner
  /// The last order enqueued while unowned: everything up to it is stamped with the owner.
  case unownedThrough
  /// ``RecordKeepingMark`` of the store, for a registry that is rebuilt.
  case recordKeeping
  /// ``AreaState``; absent: active.
  case state
  /// Client UUID, and whether the hub has it.
  case client
  /// Device, inode and machine of the data file.
  case file
  /// ``OutboxTotals``, as they were when something was last taken out.
  case totals
  /// ``Cursor``.
  case cursor
  /// The newest high water known, with its epoch.
  case highWater
  /// What the hub announced.
  case hubLimits
  /// Epochs that were left, with the place where they forked.
  case lineage
  /// The running scan from zero.
  case scan
  /// How many scans from zero were begun; the running one's mark in the rows of `known`.
  case scanCount
  /// The epochs that the rows of `known` and `bodies` name by their places in this list.
  case epochs
  /// ``BodyLog``.
  case bodies
  /// A scan from zero has been finished.
  case hasFinishedScan
  /// The position of the last batch that a closure accepted.
  case position
  /// The last counter of `acknowledged`.
  case lastAcknowledged
  /// The hub said that the account is erased there.
  case erasedAtHub
  /// When the last pass ended, and how.
  case lastPass
  /// How often a person has decided about what waits: other processes see that something may go.
  case decisions
  /// ``PushTrouble``; absent: the hub has failed on nothing.
  case pushTrouble
}

/// A record ID's bytes.
enum RecordIDCodec: KeyCodec {
  static func encode(_ key: RecordID, into buffer: inout KeyBuffer) { buffer.append(key.bytes) }

  static func withEncodedKey<R, E: Error>(
    _ key: RecordID, _ body: (RawSpan) throws(E) -> R
  ) throws(E) -> R { try body(key.bytes.span.bytes) }

  static func decode(_ bytes: RawSpan) throws(LMDBError) -> RecordID {
    RecordID(uncheckedBytes: bytes.copiedBytes())
  }
}

/// A record ID that lies in somebody else's memory, to be used only while that is there.
struct RecordBytes {
  let memory: UnsafeRawBufferPointer

  /// Lends the ID to `body` under a name that can be a key.
  static func withBytes<R>(
    of span: RawSpan, _ body: (RecordBytes) throws -> R
  ) rethrows -> R {
    // SAFETY: the span is there until `body` returns, and no caller keeps the value.
    try span.withUnsafeBytes { try body(RecordBytes(memory: $0)) }
  }
}

/// The same keys as ``RecordIDCodec`` has, without a copy: for looking up and storing, never read.
enum RecordBytesCodec: KeyCodec {
  static func encode(_ key: RecordBytes, into buffer: inout KeyBuffer) {
    buffer.append(RawSpan(_unsafeBytes: key.memory))
  }

  static func withEncodedKey<R, E: Error>(
    _ key: RecordBytes, _ body: (RawSpan) throws(E) -> R
  ) throws(E) -> R { try body(RawSpan(_unsafeBytes: key.memory)) }

  static func decode(_ bytes: RawSpan) throws(LMDBError) -> RecordBytes {
    throw LMDBError(.badForm, operation: "decode", detail: "a lent record ID is never read")
  }
}

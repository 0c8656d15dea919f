import Foundation
import HubProtocol
import LMDB

/// What an area knows of one record at the hub: its row in `known`.
///
/// Epochs are places in the area's list of epochs (``EpochList``), since a row of 24 bytes is half of
/// what it costs to take in a record with a random ID.
struct KnownRecord: Sendable, Hashable {
  /// A version of the hub.
  struct Mark: Sendable, Hashable {
    var epoch: UInt16
    var version: UInt64
    var isDeleted: Bool
  }

  /// Where the payload of the newest version lies that this device has.
  struct Body: Sendable, Hashable {
    var place: UInt64
    /// How much of the log it takes; see ``BodyLog/units(byteCount:)``.
    var units: UInt8
  }

  /// A version that is known otherwise than by a pull, which has not brought it yet.
  struct Ahead: Sendable, Hashable {
    var mark: Mark
    /// The hub gave it to a mutation of this device; else a verdict named it.
    var isOwn: Bool
  }

  /// The newest version that was applied, as contract section 1 says of metadata; nil: none yet.
  var applied: Mark?
  var ahead: Ahead?
  /// Where the area keeps records; nil when the newest version is a tombstone, or has not come.
  var body: Body?
  /// The number of the last scan from zero that brought it; 0: none.
  var scan: UInt32 = 0

  /// The tombstone that was applied.
  var tombstone: Mark? { applied.flatMap { $0.isDeleted ? $0 : nil } }

  /// The newest version that is known in any way and is none of a deletion.
  var live: Mark? {
    if let ahead, !ahead.mark.isDeleted { return ahead.mark }
    return applied.flatMap { $0.isDeleted ? nil : $0 }
  }

  /// The newest version that is known in any way.
  var newest: Mark? { ahead?.mark ?? applied }
}

enum KnownRecordCodec: ValueCodec {
  private static let hasApplied: UInt64 = 1
  private static let isDeleted: UInt64 = 2
  private static let hasAhead: UInt64 = 4
  private static let isAheadDeleted: UInt64 = 8
  private static let isAheadOwn: UInt64 = 16

  static func withEncoded<R>(
    _ value: KnownRecord, _ body: (RawSpan) throws(LMDBError) -> R
  ) throws(LMDBError) -> R {
    var head = UInt64(value.scan)
    if let body = value.body { head |= UInt64(body.units) << 56 }
    if let applied = value.applied {
      head |= UInt64(applied.epoch) << 40 | hasApplied << 32
      if applied.isDeleted { head |= isDeleted << 32 }
    }
    var words = InlineArray<5, UInt64>(repeating: 0)
    words[1] = (value.applied?.version ?? 0).bigEndian
    words[2] = (value.body?.place ?? 0).bigEndian
    if let ahead = value.ahead {
      head |= hasAhead << 32
      if ahead.mark.isDeleted { head |= isAheadDeleted << 32 }
      if ahead.isOwn { head |= isAheadOwn << 32 }
      words[3] = ahead.mark.version.bigEndian
      words[4] = UInt64(ahead.mark.epoch).bigEndian
    }
    words[0] = head.bigEndian
    return try body(words.span.bytes.extracting(first: value.ahead == nil ? 24 : 40))
  }

  static func decode(_ bytes: RawSpan) throws(LMDBError) -> KnownRecord {
    guard bytes.byteCount == 24 || bytes.byteCount == 40 else { throw badForm }
    let head = bytes.loadBigEndian(UInt64.self)
    let flags = head >> 32 & 0xff
    guard (flags & hasAhead != 0) == (bytes.byteCount == 40), flags >> 5 == 0 else { throw badForm }
    var known = KnownRecord()
    known.scan = UInt32(truncatingIfNeeded: head)
    if flags & hasApplied != 0 {
      known.applied = KnownRecord.Mark(
        epoch: UInt16(truncatingIfNeeded: head >> 40), version: bytes.loadBigEndian(at: 8),
        isDeleted: flags & isDeleted != 0)
    }
    let place = bytes.loadBigEndian(UInt64.self, at: 16)
    if place != 0 {
      known.body = KnownRecord.Body(place: place, units: UInt8(truncatingIfNeeded: head >> 56))
    }
    if flags & hasAhead != 0 {
      known.ahead = KnownRecord.Ahead(
        mark: KnownRecord.Mark(
          epoch: UInt16(truncatingIfNeeded: bytes.loadBigEndian(UInt64.self, at: 32)),
          version: bytes.loadBigEndian(at: 24), isDeleted: flags & isAheadDeleted != 0),
        isOwn: flags & isAheadOwn != 0)
    }
    return known
  }

  private static var badForm: LMDBError {
    LMDBError(.badForm, operation: "decode", detail: "a known record")
  }
}

/// The epochs in which an area's versions count, in the order in which it met them.
struct EpochList: Sendable, Hashable {
  private(set) var epochs: [UUID] = []

  /// - Throws: `damaged` when there is none with that number.
  func epoch(_ number: UInt16) throws(StoreError) -> UUID {
    guard Int(number) < epochs.count else { throw .damaged("epochs") }
    return epochs[Int(number)]
  }

  func number(of epoch: UUID) -> UInt16? {
    epochs.lastIndex(of: epoch).flatMap { UInt16(exactly: $0) }
  }

  /// - Throws: `damaged` after 65,536 epochs, which no account has.
  mutating func add(_ epoch: UUID) throws(StoreError) -> UInt16 {
    if let number = number(of: epoch) { return number }
    guard epochs.count <= Int(UInt16.max) else { throw .damaged("epochs") }
    epochs.append(epoch)
    return UInt16(epochs.count - 1)
  }

  /// Up to where each epoch's versions are also versions of `epoch`.
  func comparison(in epoch: UUID, lineage: [LineageEntry]) -> VersionComparison {
    VersionComparison(
      ends: epochs.map { $0 == epoch ? .max : lineage.forkedAt($0) })
  }

  init(_ epochs: [UUID] = []) { self.epochs = epochs }
}

/// Which versions of an area compare with those of the epoch in hand: what is known above a fork
/// excludes nothing. (Contract section 6.)
package struct VersionComparison: Sendable {
  /// By the number of the epoch.
  let ends: [UInt64]

  /// The version as a number of the epoch in hand; nil when it does not compare.
  func version(_ mark: KnownRecord.Mark) throws(StoreError) -> UInt64? {
    guard Int(mark.epoch) < ends.count else { throw .damaged("epochs") }
    return mark.version <= ends[Int(mark.epoch)] ? mark.version : nil
  }
}

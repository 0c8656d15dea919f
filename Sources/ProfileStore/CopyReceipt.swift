public import Foundation
public import HubProtocol
import LMDB

/// Which records of a profile are copied or exported.
public enum RecordSelection: Sendable, Hashable {
  /// All of them.
  case all
  /// Those whose IDs begin with these bytes.
  case prefix(RecordID)
}

/// What a copy or an import of records has left in the area that took them: a note, no claim on the
/// area that they came from.
public struct CopyReceipt: Sendable, Hashable {
  /// The copy's own ID.
  public var id: UUID
  /// The profile that the records came from.
  public var source: AreaID
  /// The account that they belong to there.
  public var sourceAccount: VerifiedAccount
  /// When, by this device's clock.
  public var copiedAt: Date
  /// Records that became changes of this account.
  public var records: Int
  /// How many of those are parked, since an edit of the same record waits here.
  public var parked: Int
  /// Records that this profile had already with the same content; they were passed over.
  public var unchanged: Int
}

/// Receipts by their IDs. The table is made with the first one.
enum CopyReceiptCodec: StoredForm {
  typealias Value = CopyReceipt

  static let tableName = "copies"

  static func encoded(_ value: CopyReceipt) -> [UInt8] {
    var writer = ByteWriter()
    writer.write(value.id)
    writer.write(value.source.uuid)
    writer.write(value.sourceAccount.bytes)
    writer.write(value.copiedAt)
    for count in [value.records, value.parked, value.unchanged] { writer.write(UInt64(count)) }
    return writer.bytes
  }

  static func read(_ reader: inout ByteReader) throws(StoreError) -> CopyReceipt {
    let id = try reader.readUUID()
    let source = AreaID(uuid: try reader.readUUID())
    let account = try VerifiedAccount(reading: Data(try reader.readBytes()))
    return CopyReceipt(
      id: id, source: source, sourceAccount: account, copiedAt: try reader.readTime(),
      records: Int(clamping: try reader.readUInt64()),
      parked: Int(clamping: try reader.readUInt64()),
      unchanged: Int(clamping: try reader.readUInt64()))
  }
}

package import Foundation

/// The records of a page in CBOR, written one by one straight from where their bytes lie.
///
/// The same bytes as a ``ChangesPage`` of such records would have, without a value for each: a hub
/// that serves hundreds of records in a request spends its time on nothing else.
package struct EncodedRecords: Sendable {
  private var writer: CBORWriter
  /// How many records there are.
  package private(set) var count = 0
  /// The version of the last one; nil without any.
  package private(set) var lastVersion: UInt64?

  /// - Parameter byteCountHint: about how many bytes they will have.
  package init(byteCountHint: Int) {
    writer = CBORWriter(byteCountHint: byteCountHint)
  }

  /// Adds a record.
  /// - Parameters:
  ///   - id: 1 to 400 bytes of UTF-8, as they were stored.
  ///   - payload: nil for a tombstone.
  package mutating func append(
    id: RawSpan, version: UInt64, payload: RawSpan?, client: UUID, mutation: UUID
  ) {
    writer.copy(EncodedRecords.beginning)
    writer.text(span: id)
    writer.copy(EncodedRecords.version)
    writer.unsigned(version)
    writer.copy(EncodedRecords.deleted)
    writer.bool(payload == nil)
    writer.copy(EncodedRecords.payload)
    if let payload { writer.payload(span: payload) } else { writer.null() }
    writer.copy(EncodedRecords.client)
    writer.uuid(client)
    writer.copy(EncodedRecords.mutation)
    writer.uuid(mutation)
    count += 1
    lastVersion = version
  }

  /// Their bytes, as they stand in a list.
  var bytes: [UInt8] { writer.bytes }

  // What stands before each value: the head of an object with six members, and the names.
  private static let beginning = [CBOR.MajorType.map.rawValue << 5 | 6] + CBORWriter.text("id")
  private static let version = CBORWriter.text("version")
  private static let deleted = CBORWriter.text("deleted")
  private static let payload = CBORWriter.text("payload")
  private static let client = CBORWriter.text("client")
  private static let mutation = CBORWriter.text("mutation")
}

extension ChangesPage {
  /// The page in CBOR, with records that are encoded already in place of its own.
  /// - Precondition: it has none of its own.
  package func encoded(with encoded: EncodedRecords) -> Data {
    precondition(records.isEmpty, "a page has its records in one form")
    return CBORWriter.message(byteCountHint: 1024, list: encoded.bytes, count: encoded.count) {
      writeHead(to: &$0)
    }
  }
}

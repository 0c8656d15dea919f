package import Foundation
package import HubProtocol
import LMDB

/// Downloaded pages of one leg, staged in an environment of their own in the area's directory and
/// read back through the memory map. Nothing in it is synced; it is never read by another process.
package final class Scratch: Sendable {
  /// What a leg may take beside its payloads and IDs: the tables' own pages.
  private static let overheadByteCount = 64 << 20

  private let directory: String
  private let environment: Environment
  private let header: Table<TextCodec, BytesCodec>
  /// record → the newest staged version.
  private let versions: Table<RecordIDCodec, UInt64Codec>
  /// version → the record.
  private let staged: Table<UInt64Codec, StagedCodec>
  private let headerBytes: [UInt8]

  /// Makes an empty scratch for a leg. Whatever lay there is deleted, not read.
  /// - Parameter byteCountMax: payload and ID bytes of the leg, but for its last page.
  package init(
    area: Area, account: Data, epoch: UUID, until: UInt64, place: UInt64, byteCountMax: Int
  ) throws {
    directory = Self.directory(of: area)
    try Files.remove(directory)
    try Files.makeDirectory(directory)
    var configuration = Environment.Configuration()
    configuration.durability = .unsafeWithoutSync
    configuration.mapSizeByteCountMax = Self.mapByteCountMax(for: byteCountMax)
    do {
      environment = try Environment.open(at: directory, configuration: configuration)
      header = try environment.table("header", key: TextCodec.self, value: BytesCodec.self)
      versions = try environment.table(
        "versions", key: RecordIDCodec.self, value: UInt64Codec.self)
      staged = try environment.table("staged", key: UInt64Codec.self, value: StagedCodec.self)
    } catch let error as LMDBError {
      throw StoreError(.storage, "the replay's scratch cannot be made", cause: error)
    }
    var writer = ByteWriter()
    writer.write(area.id.uuid)
    writer.write(account)
    writer.write(epoch)
    writer.write(until)
    writer.write(place)
    headerBytes = writer.bytes
    try environment.writeBlocking { [header, headerBytes] in
      try $0.put(headerBytes, for: "leg", in: header)
    }
  }

  private static func directory(of area: Area) -> String { area.directory + "/scratch" }

  /// Removes what a pass that was killed has left; it is never read.
  package static func remove(of area: Area) throws {
    let directory = directory(of: area)
    if FileManager.default.fileExists(atPath: directory) { try Files.remove(directory) }
  }

  /// Twice the payloads, since LMDB rounds a large one up to whole pages, and a page beyond the limit.
  private static func mapByteCountMax(for byteCountMax: Int) -> Int {
    let (double, isOver) = byteCountMax.multipliedReportingOverflow(by: 2)
    return max(isOver ? Int.max >> 1 : double, 512 << 20) + overheadByteCount
  }

  /// Stages one page; across the pages of a leg the newest version of a record wins.
  /// - Throws: `mapFull` under a byte limit of the leg, as `storage`.
  package func stage(_ records: [WireRecord]) async throws {
    do {
      try await environment.writeIgnoringCancellation { [versions, staged] transaction in
        for record in records {
          if let known = try transaction.value(of: record.id, in: versions) {
            guard known < record.version else { continue }
            try transaction.delete(known, in: staged)
          }
          try transaction.put(record.version, for: record.id, in: versions)
          try transaction.put(
            IncomingChange(
              record: record.id, version: record.version, payload: record.payload,
              isDeleted: record.deleted), for: record.version, in: staged)
        }
      }
    } catch let error as LMDBError {
      throw StoreError(.storage, "a page could not be staged", cause: error)
    }
  }

  /// Staged records in version order; none when there are no more.
  /// - Parameter byteCountMax: stored bytes in all; a single larger record comes alone.
  package func batch(
    after version: UInt64?, limit: Int, byteCountMax: Int
  ) throws -> [IncomingChange] {
    do {
      return try environment.read { transaction in
        guard try transaction.value(of: "leg", in: header) == headerBytes else {
          throw StoreError.damaged("scratch header")
        }
        var changes: [IncomingChange] = []
        var byteCount = 0
        try transaction.scan(staged, version.map { .after($0) } ?? .all) { _, value in
          byteCount += value.byteCount
          guard changes.isEmpty || byteCount <= byteCountMax else { return .stop }
          changes.append(try StagedCodec.decode(value))
          return changes.count < limit ? .next : .stop
        }
        return changes
      }
    } catch let error as LMDBError {
      throw StoreError(.storage, "a staged page could not be read", cause: error)
    }
  }

  /// Ends it and removes its files.
  package func remove() throws {
    do {
      try environment.close()
    } catch {
      throw StoreError(.storage, "the replay's scratch cannot be closed", cause: error)
    }
    try Files.remove(directory)
  }
}

enum StagedCodec: StoredForm {
  typealias Value = IncomingChange

  static func encoded(_ value: IncomingChange) -> [UInt8] {
    var writer = ByteWriter()
    writer.write(value.version)
    writer.write(value.record.bytes)
    writer.write(UInt8(value.isDeleted ? 1 : 0))
    writer.write(UInt8(value.payload == nil ? 0 : 1))
    if let payload = value.payload { writer.writeLast(payload) }
    return writer.bytes
  }

  static func read(_ reader: inout ByteReader) throws(StoreError) -> IncomingChange {
    let version = try reader.readUInt64()
    let record = RecordID(uncheckedBytes: try reader.readBytes())
    let isDeleted = try reader.readFlag()
    return IncomingChange(
      record: record, version: version, payload: try reader.readFlag() ? reader.readLast() : nil,
      isDeleted: isDeleted)
  }
}

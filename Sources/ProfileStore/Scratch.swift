package import Foundation
import LMDB
import Synchronization

/// Downloaded pages of one leg, staged in an environment of their own in the area's directory and
/// read back in place through the memory map. Nothing in it is synced; no other process reads it.
///
/// A page is one value. Across the pages of a leg the newest version of a record wins: what is
/// superseded is marked before anything is read back.
package final class Scratch: Sendable {
  /// What a leg may take beside its payloads and IDs: heads, and the tables' own pages.
  private static let overheadByteCount = 64 << 20
  /// How much is read ahead at once: once or twice as much lies ahead.
  private static let aheadByteCount = 4 << 20

  private let directory: String
  private let environment: Environment
  private let header: Table<TextCodec, BytesCodec>
  /// number → page.
  private let pages: Table<UInt64Codec, BytesCodec>
  private let headerBytes: [UInt8]
  private let state = Mutex(State())
  /// Where pages are read ahead of who looks at them.
  private let ahead = DispatchQueue(label: "holdfast.scratch.ahead", qos: .userInitiated)

  private struct State {
    var pageCount = 0
    /// record → the number of the page (32 bits) and the place in it of its newest version.
    var newest = IDTable(capacity: 512)
    /// What is superseded, by page.
    var superseded: [Int: [Int]] = [:]
    /// Held from the first page that is read back to the end.
    var snapshot: LentSnapshot?
    /// Payload and other bytes of all staged pages.
    var byteCount = 0
    var ahead = ReadAhead(pageCount: 0, byteCount: 0, partByteCount: 0)
  }

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
    var writer = ByteWriter()
    writer.write(area.id.uuid)
    writer.write(account)
    writer.write(epoch)
    writer.write(until)
    writer.write(place)
    headerBytes = writer.bytes
    do {
      environment = try Environment.open(at: directory, configuration: configuration)
      header = try environment.table("header", key: TextCodec.self, value: BytesCodec.self)
      pages = try environment.table("pages", key: UInt64Codec.self, value: BytesCodec.self)
      try environment.writeBlocking { [header, headerBytes] in
        try $0.put(headerBytes, for: "leg", in: header)
      }
    } catch let error as LMDBError {
      throw StoreError(.storage, "the replay's scratch cannot be made", cause: error)
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
    return max(min(isOver ? .max : double, .max >> 1), 512 << 20) + overheadByteCount
  }

  /// How many pages are staged.
  package var pageCount: Int { state.withLock(\.pageCount) }

  // MARK: Staging

  /// Stages a page behind the others; its versions are newer than all of theirs. One call at a time.
  /// - Throws: `mapFull` under a byte limit of the leg, as `storage`.
  /// - Cost: the page is copied once; some 20 bytes of memory are kept for each change.
  package func stage(_ page: ChangePage) async throws {
    let number = pageCount
    precondition(number < 1 << 31, "a leg has so many pages")
    do {
      try await environment.writeIgnoringCancellation { [pages] transaction in
        try transaction.put(bytes: page.bytes, for: UInt64(number), in: pages)
      }
      try environment.read { transaction in
        try state.withLock { state in
          for index in 0..<page.count {
            let id = page.id(page[index])
            let before = try state.newest.put(id, at: UInt64(number) << 32 | UInt64(index)) {
              try isStaged(id, at: $0, beside: page, number, transaction)
            }
            if let before {
              let index = Int(UInt32(truncatingIfNeeded: before))
              state.superseded[Int(before >> 32), default: []].append(index)
            }
          }
          state.pageCount = number + 1
          state.byteCount += page.bytes.byteCount
        }
      }
    } catch let error as LMDBError {
      throw StoreError(.storage, "a page could not be staged", cause: error)
    }
  }

  /// Whether the ID at a place is this one.
  private func isStaged(
    _ id: RawSpan, at place: UInt64, beside page: ChangePage, _ number: Int,
    _ transaction: borrowing ReadTransaction
  ) throws -> Bool {
    let index = Int(UInt32(truncatingIfNeeded: place))
    if place >> 32 == UInt64(number) { return page.id(page[index]).isEqual(to: id) }
    guard let bytes = try transaction.bytes(of: place >> 32, in: pages) else {
      throw StoreError.damaged("a staged page")
    }
    return try bytes.withUnsafeBytes { memory in
      // Looked at within this closure only.
      let staged = try ChangePage(memory, keptBy: self)
      guard index < staged.count else { throw StoreError.damaged("a staged page") }
      return staged.id(staged[index]).isEqual(to: id)
    }
  }

  /// Marks what is superseded. From then on pages are read back, and none is staged.
  /// - Cost: nothing where no record came twice, as from a hub that does what the protocol says;
  ///   else a copy of each page in which one is superseded.
  package func finish() async throws {
    let superseded = state.withLock(\.superseded)
    do {
      for (number, places) in superseded.sorted(by: { $0.key < $1.key }) {
        try await environment.writeIgnoringCancellation { [pages] transaction in
          let page = try Self.copy(of: number, in: pages, transaction)
          for place in places { page.mark(place, as: .isSkipped) }
          try transaction.put(bytes: page.bytes, for: UInt64(number), in: pages)
        }
      }
      try environment.read { transaction in
        guard try transaction.value(of: "leg", in: header) == headerBytes else {
          throw StoreError.damaged("scratch header")
        }
      }
      let snapshot = try LentSnapshot(of: environment)
      state.withLock {
        $0.snapshot = snapshot
        $0.ahead = ReadAhead(
          pageCount: $0.pageCount, byteCount: $0.byteCount, partByteCount: Self.aheadByteCount)
      }
      readAhead(at: 0, snapshot)
    } catch let error as LMDBError {
      throw StoreError(.storage, "a staged page could not be read", cause: error)
    }
  }

  private static func copy(
    of number: Int, in pages: Table<UInt64Codec, BytesCodec>,
    _ transaction: borrowing WriteTransaction
  ) throws -> ChangePage {
    guard let staged = try transaction.bytes(of: UInt64(number), in: pages) else {
      throw StoreError.damaged("a staged page")
    }
    return try staged.withUnsafeBytes { try ChangePage(copying: $0) }
  }

  // MARK: Reading back

  /// A staged page in place, by its number from 0.
  ///
  /// It may be looked at until ``remove()``; nothing is copied, and a payload that nobody looks at is
  /// not touched.
  /// - Precondition: ``finish()`` was called, and there is such a page.
  package func page(_ number: Int) throws -> ChangePage {
    guard let snapshot = state.withLock(\.snapshot) else {
      preconditionFailure("ProfileStore: a scratch is read back before it is finished")
    }
    readAhead(at: number, snapshot)
    do {
      guard let memory = try snapshot.bytes(of: UInt64(number), in: pages) else {
        throw StoreError.damaged("a staged page")
      }
      return try ChangePage(memory, keptBy: snapshot)
    } catch let error as LMDBError {
      throw StoreError(.storage, "a staged page could not be read", cause: error)
    }
  }

  /// While the app works on a batch the next ones are read from the disk, if they are not in memory,
  /// and mapped: most of what a first look at a page costs is page faults.
  private func readAhead(at number: Int, _ snapshot: LentSnapshot) {
    guard let numbers = state.withLock({ $0.ahead.next(at: number) }) else { return }
    ahead.async { [pages] in
      snapshot.populate(numbers.lazy.map { UInt64($0) }, in: pages)
    }
  }

  /// Ends it and removes its files. No page of it is looked at any more.
  package func remove() throws {
    let snapshot = state.withLock { $0.snapshot.take() }
    // The map must stay while it is read ahead.
    ahead.sync {}
    snapshot?.end()
    do {
      try environment.close()
    } catch {
      throw StoreError(.storage, "the replay's scratch cannot be closed", cause: error)
    }
    try Files.remove(directory)
  }
}

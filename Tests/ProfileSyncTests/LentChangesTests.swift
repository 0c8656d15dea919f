import Foundation
import HubProtocol
import ProfileStore
import ProfileSync
import SyncTestSupport
import Testing

// Contract section 5.4, and the lent path.
@Suite("The changes of a batch, lent in place")
struct LentChangesTests {
  private static let changes = [
    IncomingChange(record: "a", version: 1, payload: Data(#"{"n":1}"#.utf8), isDeleted: false),
    IncomingChange(record: "b", version: 2, payload: nil, isDeleted: true),
    IncomingChange(record: "c", version: 3, payload: Data(), isDeleted: false),
    IncomingChange(record: "d", version: 4, payload: nil, isDeleted: true, isInferred: true),
    IncomingChange(record: "e", version: 5, payload: Data(#"{"n":5}"#.utf8), isDeleted: false),
  ]

  private struct Note: Codable, Equatable { var n: Int }

  @Test("say what the pages say")
  func values() throws {
    let contents = BatchContents([ChangePage(Self.changes)])
    let lent = contents.changes
    #expect(lent.count == 5 && lent.indices == 0..<5 && !lent.isEmpty)
    for index in lent.indices {
      let change = lent[index]
      let wanted = Self.changes[index]
      #expect(change.record == wanted.record)
      #expect(change.id.withUnsafeBytes { Array($0) } == wanted.record.bytes)
      #expect(change.version == wanted.version)
      #expect(change.payload.withUnsafeBytes { Data($0) } == wanted.payload ?? Data())
      #expect(change.payloadCopy == wanted.payload)
      #expect(change.isDeleted == wanted.isDeleted && change.isInferred == wanted.isInferred)
      #expect(change.localEdit == .none)
      #expect(change.base == (wanted.isDeleted ? .mustNotExist : .version(wanted.version)))
    }
    let decoded = try lent[4].decode(Note.self)
    #expect(decoded == Note(n: 5))
    #expect(throws: StoreError.self) { try lent[1].decode(Note.self) }
    #expect(throws: DecodingError.self) { try lent[2].decode(Note.self) }
    #expect(lent.copies().map(\.record) == Self.changes.map(\.record))
    #expect(lent.copies().map(\.payload) == Self.changes.map(\.payload))
    #expect(try lent.copies()[0].decode(Note.self) == Note(n: 1))
  }

  @Test("come in order over several pages, without what is outdated or skipped, edits flagged")
  func chosen() throws {
    let first = ChangePage(Self.changes)
    let second = ChangePage([
      IncomingChange(record: "f", version: 6, payload: Data("f".utf8), isDeleted: false),
      IncomingChange(record: "g", version: 7, payload: Data("g".utf8), isDeleted: false),
    ])
    first.mark(0, as: .isOutdated)
    first.mark(1, as: [.isOutdated, .isSkipped])
    first.mark(4, as: .isSkipped)
    var edits = [ChangePage.Flags](repeating: [], count: 7)
    edits[3] = .isPending
    edits[5] = [.isPending, .isParked]
    let contents = BatchContents([first, second], edits: edits)
    let copies = contents.changes.copies()
    #expect(copies.map(\.record) == ["c", "d", "f", "g"])
    #expect(copies.map(\.localEdit) == [.none, .pending, .parked, .none])
    #expect(contents.count == 4)
  }

  @Test("are lent one after the other until the body throws, with its own error")
  func forEach() throws {
    let contents = BatchContents([ChangePage(Self.changes)])
    var seen: [UInt64] = []
    contents.changes.forEach { seen.append($0.version) }
    #expect(seen == [1, 2, 3, 4, 5])
    seen = []
    #expect(throws: AppFailure.self) {
      try contents.changes.forEach { change in
        if change.version == 3 { throw AppFailure() }
        seen.append(change.version)
      }
    }
    #expect(seen == [1, 2])
  }

  /// The page's bytes with all payloads in memory that nobody may touch: a read of one byte of them
  /// ends the process.
  private final class Guarded {
    private let memory: UnsafeMutableRawPointer
    private let byteCount: Int
    let bytes: UnsafeRawBufferPointer

    init(_ page: ChangePage) throws {
      let unit = Int(sysconf(Int32(_SC_PAGESIZE)))
      let headByteCount = page[0].payloadStart
      let start = (unit - headByteCount % unit) % unit
      byteCount = (start + page.byteCount + unit - 1) / unit * unit
      let mapped = mmap(nil, byteCount, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
      let memory = try #require(mapped != MAP_FAILED ? mapped : nil)
      self.memory = memory
      page.bytes.withUnsafeBytes { bytes in
        UnsafeMutableRawBufferPointer(start: memory + start, count: bytes.count)
          .copyMemory(from: bytes)
      }
      bytes = UnsafeRawBufferPointer(start: memory + start, count: page.byteCount)
      let guarded = start + headByteCount
      try #require(guarded % unit == 0)
      try #require(mprotect(memory + guarded, byteCount - guarded, PROT_NONE) == 0)
    }

    deinit { munmap(memory, byteCount) }
  }

  @Test("no byte of a payload is touched by whoever looks at all the rest")
  func untouched() throws {
    let page = ChangePage(
      (1...500).map {
        IncomingChange(
          record: RecordID("record \($0)"), version: UInt64($0),
          payload: Data(repeating: 1, count: 300), isDeleted: false)
      })
    let guarded = try Guarded(page)
    let contents = BatchContents([try ChangePage(guarded.bytes, keptBy: guarded)])
    let lent = contents.changes
    var versions: UInt64 = 0
    var ids: Set<RecordID> = []
    var byteCount = 0
    lent.forEach { change in
      versions += change.version
      ids.insert(change.record)
      byteCount += change.payload.byteCount
      #expect(!change.isDeleted && !change.isInferred && change.localEdit == .none)
    }
    #expect(versions == 125_250 && ids.count == 500 && byteCount == 150_000)
  }
}

@Suite("Pages on their way into a commit")
struct CommitLineTests {
  private static func pulled(
    _ version: UInt64, count: Int = 1, byteCount: Int = 10, partByteCountMax: Int = .max
  ) throws -> PulledPage {
    PulledPage(
      ChangesOutline(
        ChangesPage(
          hub: UUID(), epoch: UUID(), account: try AccountID("alice"), after: version - 1,
          next: version + UInt64(count) - 1, more: true, highWater: 1_000,
          records: (0..<count).map {
            WireRecord(
              id: RecordID("r\(version + UInt64($0))"), version: version + UInt64($0),
              deleted: false, payload: Data(count: byteCount))
          })), byteCountMax: partByteCountMax)
  }

  private static func taken(_ line: inout CommitLine) throws -> CommitLine.Group {
    let group = line.take()
    return try #require(group)
  }

  @Test("a page of more bytes than a batch may have comes in parts; a larger record comes alone")
  func parts() throws {
    func versions(_ byteCountMax: Int) throws -> [[UInt64]] {
      let page = try Self.pulled(7, count: 5, byteCount: 98, partByteCountMax: byteCountMax)
      // The ID counts, too.
      #expect(page.contentByteCount == 5 * 98 + 2 * 3 + 3 * 2)
      return page.parts.map { part in (0..<part.count).map { part[$0].version } }
    }
    #expect(try versions(.max) == [[7, 8, 9, 10, 11]])
    #expect(try versions(200) == [[7, 8], [9], [10], [11]])
    #expect(try versions(201) == [[7, 8], [9, 10], [11]])
    #expect(try versions(1) == [[7], [8], [9], [10], [11]])
  }

  @Test("pages that wait share a commit, up to 32 of them")
  func shared() throws {
    var line = CommitLine()
    #expect(line.isEmpty)
    let nothing = line.take()
    #expect(nothing?.pages.count == nil)
    for number in 1...40 {
      line.add(try Self.pulled(UInt64(number)))
      #expect(line.isFull == (number > 32))
    }
    let first = try Self.taken(&line)
    #expect(first.pages.count == 32 && first.cursor == 32)
    #expect(!line.isFull && !line.isEmpty)
    let second = try Self.taken(&line)
    #expect(second.pages.count == 8 && second.cursor == 40)
    #expect(line.isEmpty)
  }

  @Test("up to 16 MiB of them; the cursor goes as far as whole parts go")
  func bytes() throws {
    var line = CommitLine()
    line.add(try Self.pulled(1, count: 3, byteCount: 7 << 20, partByteCountMax: 16 << 20))
    // Two of the page's records fit, the third waits for the next commit, with what follows.
    #expect(line.isFull)
    line.add(try Self.pulled(4))
    let first = try Self.taken(&line)
    #expect(first.pages.map(\.count) == [2] && first.cursor == 2)
    let second = try Self.taken(&line)
    #expect(second.pages.map(\.count) == [1, 1] && second.cursor == 4)
  }

  @Test("a page without records moves the cursor")
  func empty() throws {
    var line = CommitLine()
    line.add(try Self.pulled(1))
    line.add(
      PulledPage(
        ChangesOutline(
          ChangesPage(
            hub: UUID(), epoch: UUID(), account: try AccountID("alice"), after: 1, next: 9,
            more: false, highWater: 9, records: []))))
    let group = try Self.taken(&line)
    #expect(group.pages.count == 1 && group.cursor == 9 && line.isEmpty)
  }

  @Test("an app gets at most 500 records at once, small pages together")
  func closure() {
    var size = BatchSize(hasClosure: true)
    let page = ChangePage(
      (1...200).map {
        IncomingChange(
          record: RecordID("\($0)"), version: UInt64($0), payload: Data(), isDeleted: false)
      })
    #expect(size.takes(page) && size.takes(page) && !size.takes(page))
  }
}

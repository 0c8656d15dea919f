import Foundation
import LMDB
import Synchronization
import Testing

@Suite("A copy")
struct CopyTests {
  let directory: TemporaryDirectory
  let environment: Environment
  let table: Table<UInt64Codec, BytesCodec>
  let counts: Table<TextCodec, UInt64Codec>

  init() throws {
    directory = try TemporaryDirectory()
    var configuration = Environment.Configuration()
    configuration.mapSizeByteCount = 64 << 20
    environment = try Environment.open(
      at: directory.file("env"), configuration: configuration)
    table = try environment.table("t", key: UInt64Codec.self, value: BytesCodec.self)
    counts = try environment.table("counts", key: TextCodec.self, value: UInt64Codec.self)
    for _ in 0..<8 { try environment.write { [self] in try add(1_000, &$0) } }
  }

  /// Values of many lengths, some on overflow pages; the count is right after each commit.
  private func add(_ count: UInt64, _ transaction: inout WriteTransaction) throws {
    let first = try transaction.value(of: "count", in: counts) ?? 0
    for number in first..<(first + count) {
      try transaction.put(Self.value(number), for: number, in: table)
    }
    try transaction.put(first + count, for: "count", in: counts)
  }

  private static func value(_ number: UInt64) -> [UInt8] {
    [UInt8](
      repeating: UInt8(truncatingIfNeeded: number),
      count: Int(number * 37 % (number % 50 == 0 ? 9_000 : 600)))
  }

  /// Everything in a copy is what one commit left, and it can be written.
  private func requireWhole(_ name: String) throws {
    let copy = try Environment.open(at: directory.file(name))
    let table = try copy.table("t", key: UInt64Codec.self, value: BytesCodec.self)
    let counts = try copy.table("counts", key: TextCodec.self, value: UInt64Codec.self)
    try copy.read { transaction in
      let count = try #require(try transaction.value(of: "count", in: counts))
      #expect(count >= 8_000 && count % 100 == 0)
      var next: UInt64 = 0
      try transaction.scan(table) { key, value in
        guard key.loadBigEndian() == next, value.copiedBytes() == Self.value(next)
        else { return .stop }
        next += 1
        return .next
      }
      #expect(next == count)
    }
    try copy.write { try $0.put([1], for: 1_000_000, in: table) }
    try copy.close()
  }

  @Test(
    "made while others write is one snapshot, whole, with private rights", arguments: [false, true])
  func beside(compacting: Bool) async throws {
    let isDone = CopyIsDone()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<4 {
        group.addTask {
          while !isDone.isSet {
            try await environment.write { try self.add(100, &$0) }
          }
        }
      }
      for number in 0..<3 {
        let progress = Collected()
        try await environment.copy(to: directory.file("copy\(number)"), compacting: compacting) {
          numbers in progress.numbers.withLock { $0.append(numbers) }
        }
        let seen = progress.numbers.withLock { $0 }
        #expect(seen.count > 3)
        #expect(seen.first?.copiedByteCount == 0)
        #expect(seen.last?.copiedByteCount == seen.last?.totalByteCount)
        #expect(zip(seen, seen.dropFirst()).allSatisfy { $0.copiedByteCount < $1.copiedByteCount })
      }
      isDone.set()
      try await group.waitForAll()
    }
    for number in 0..<3 {
      let path = directory.file("copy\(number)")
      #expect(try FileManager.default.contentsOfDirectory(atPath: path) == ["data.mdb"])
      let rights = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions]
      #expect(rights as? Int == 0o700)
      let file = try FileManager.default.attributesOfItem(atPath: path + "/data.mdb")
      #expect(file[.posixPermissions] as? Int == 0o600)
      try requireWhole("copy\(number)")
    }
  }

  @Test("compacted has no free page and is smaller")
  func compacts() throws {
    try environment.write { _ = try $0.deleteAll(in: table, .from(4_000)) }
    try environment.write { [counts] in try $0.put(4_000, for: "count", in: counts) }
    try environment.copy(to: directory.file("whole"))
    try environment.copy(to: directory.file("compact"), compacting: true)
    let before = try environment.detailedStatistics()
    let whole = try Environment.open(at: directory.file("whole")).detailedStatistics()
    let compact = try Environment.open(at: directory.file("compact")).detailedStatistics()
    #expect(before.freePageCount > 100)
    #expect(whole.pageCount == before.pageCount)
    #expect(whole.freePageCount == before.freePageCount)
    #expect(compact.freePageCount == 0)
    #expect(
      compact.pageCount == before.pageCount - before.freePageCount - before.freeList.pageCount)
    #expect(compact.tables == before.tables)
    #expect(whole.transaction == before.transaction)
    #expect(compact.transaction == before.transaction)
  }

  @Test("of a new and of an emptied environment opens", arguments: [false, true])
  func empty(compacting: Bool) throws {
    let fresh = try Environment.open(at: directory.file("fresh"))
    try fresh.copy(to: directory.file("of fresh"), compacting: compacting)
    try environment.write { try $0.deleteAll(in: table) }
    try environment.copy(to: directory.file("of emptied"), compacting: compacting)
    #expect(try Environment.open(at: directory.file("of fresh")).tableNames() == [])
    let emptied = try Environment.open(at: directory.file("of emptied"))
    #expect(try emptied.tableNames() == ["counts", "t"])
    let count = try emptied.table("t", key: UInt64Codec.self, value: BytesCodec.self)
    #expect(try emptied.read { try $0.count(of: count) } == 0)
  }

  @Test("refuses whatever is at the place already and leaves it alone")
  func existing() throws {
    let manager = FileManager.default
    try manager.createDirectory(atPath: directory.file("taken"), withIntermediateDirectories: false)
    try Data("x".utf8).write(to: URL(fileURLWithPath: directory.file("file")))
    try manager.createSymbolicLink(
      atPath: directory.file("link"), withDestinationPath: directory.file("nowhere"))
    let before = try manager.contentsOfDirectory(atPath: directory.path).sorted()
    for name in ["taken", "taken/", "file", "link", "env"] {
      let error = try #require(throws: LMDBError.self) {
        try environment.copy(to: directory.file(name))
      }
      #expect(error.code == .exists, "\(name)")
    }
    let missing = try #require(throws: LMDBError.self) {
      try environment.copy(to: directory.file("none/copy"))
    }
    #expect(missing.code == .missing)
    #expect(try manager.contentsOfDirectory(atPath: directory.path).sorted() == before)
  }

  @Test(
    "that is cancelled ends with CancellationError, leaves no file and no snapshot",
    arguments: [false, true])
  func cancelled(compacting: Bool) async throws {
    let (steps, continuation) = AsyncStream<Void>.makeStream()
    let hasCancelled = DispatchSemaphore(value: 0)
    let task = Task { [environment, directory] in
      try await environment.copy(to: directory.file("copy"), compacting: compacting) { _ in
        continuation.yield()
        // On the copy's own thread, until the cancellation has arrived; then for the next call, too.
        hasCancelled.wait()
        hasCancelled.signal()
      }
    }
    for await _ in steps { break }
    task.cancel()
    hasCancelled.signal()
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path) == ["env"])
    #expect(try environment.readers().allSatisfy { $0.transaction == nil })
  }

  @Test("whose progress throws ends with that error and leaves nothing", arguments: [false, true])
  func refusedByCaller(compacting: Bool) throws {
    struct Enough: Error {}
    #expect(throws: Enough.self) {
      try environment.copy(to: directory.file("copy"), compacting: compacting) {
        if $0.copiedByteCount > 1 << 20 { throw Enough() }
      }
    }
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path) == ["env"])
    #expect(try environment.readers().allSatisfy { $0.transaction == nil })
  }

  @Test("keeps no writer waiting, also not one that enlarges the map", arguments: [false, true])
  func growthMeanwhile(compacting: Bool) throws {
    var hasGrown = false
    try environment.copy(to: directory.file("copy"), compacting: compacting) { numbers in
      guard !hasGrown, numbers.copiedByteCount > 0 else { return }
      hasGrown = true
      let before = environment.mapByteCount
      try environment.write { transaction in
        for number in 0..<UInt64(80) {
          try transaction.put(
            [UInt8](repeating: 1, count: 1 << 20), for: 1_000_000 + number, in: table)
        }
      }
      #expect(environment.mapByteCount > before)
    }
    #expect(hasGrown)
    try requireWhole("copy")
  }

  @Test(
    "of an environment that is closed meanwhile ends with closed and leaves nothing",
    arguments: [false, true])
  func closedMeanwhile(compacting: Bool) throws {
    let error = try #require(throws: LMDBError.self) {
      try environment.copy(to: directory.file("copy"), compacting: compacting) {
        if $0.copiedByteCount > 0, !environment.isClosed { try environment.close() }
      }
    }
    #expect(error.code == .closed)
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path) == ["env"])
    let again = try Environment.open(at: directory.file("env"))
    #expect(try again.readers().isEmpty)
  }
}

private final class CopyIsDone: Sendable {
  private let value = Atomic<Bool>(false)
  var isSet: Bool { value.load(ordering: .relaxed) }
  func set() { value.store(true, ordering: .relaxed) }
}

private final class Collected: Sendable {
  let numbers = Mutex<[CopyProgress]>([])
}

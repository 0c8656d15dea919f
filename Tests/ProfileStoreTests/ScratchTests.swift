import Foundation
import HubProtocol
import ProfileStore
import Testing

extension ChangePage {
  /// A page of records "r1", "r2"… with these versions, the payload naming both.
  static func sample(_ records: [(number: Int, version: UInt64)]) -> ChangePage {
    ChangePage(
      records.map {
        IncomingChange(
          record: RecordID("r\($0.number)"), version: $0.version,
          payload: Data("r\($0.number) at \($0.version)".utf8), isDeleted: false)
      })
  }

  /// What it holds, as values.
  func changes() throws -> [IncomingChange] { try (0..<count).map { try change(at: $0) } }

  /// The versions that are marked so.
  func versions(_ flags: Flags) -> [UInt64] {
    (0..<count).filter { self[$0].flags.isSuperset(of: flags) }.map { self[$0].version }
  }
}

@Suite("What a leg of a scan has staged")
struct ScratchTests {
  private let store: TemporaryStore

  init() throws { store = try TemporaryStore() }

  @Test("a leg may be given any limit", arguments: [0, .max / 2, .max])
  func anyLimit(_ byteCountMax: Int) async throws {
    let scratch = try await scratch(byteCountMax: byteCountMax)
    try await scratch.stage(.sample([(1, 1)]))
    try await scratch.finish()
    #expect(try scratch.page(0).count == 1)
    try scratch.remove()
  }

  private func scratch(byteCountMax: Int = 1 << 20) async throws -> Scratch {
    let (ada, profile) = try await store.signedInProfile("ada", in: try store.registry())
    return try Scratch(
      area: profile.area, account: ada.bytes, epoch: Hub.epoch, until: 5, place: 0,
      byteCountMax: byteCountMax)
  }

  @Test("is read back page by page, as it was packed")
  func readBack() async throws {
    let scratch = try await scratch()
    let pages: [ChangePage] = (0..<10).map { page in
      let numbers = page * 50 + 1...page * 50 + 50
      return .sample(numbers.map { (number: $0, version: UInt64($0)) })
    }
    for page in pages { try await scratch.stage(page) }
    try await scratch.finish()
    #expect(scratch.pageCount == 10)
    for (number, page) in pages.enumerated() {
      let staged = try scratch.page(number)
      #expect(try staged.changes() == page.changes())
      #expect(staged.versions(.isSkipped) == [])
    }
    try scratch.remove()
  }

  @Test("has each record in its newest version only, across pages and also twice over")
  func newest() async throws {
    let scratch = try await scratch()
    try await scratch.stage(.sample([(1, 1), (2, 2), (3, 3)]))
    try await scratch.stage(.sample([(4, 4), (2, 5)]))
    try await scratch.stage(.sample([(2, 6), (1, 7)]))
    try await scratch.finish()
    let skipped: [[UInt64]] = try (0...2).map { number in
      try scratch.page(number).versions(ChangePage.Flags.isSkipped)
    }
    #expect(skipped == [[1, 2], [5], []])
    // What is superseded is still there, whole.
    #expect(try scratch.page(0).changes().map(\.version) == [1, 2, 3])
    try scratch.remove()
  }

  @Test("keeps the marks that a page came with")
  func marks() async throws {
    let scratch = try await scratch()
    let page = ChangePage.sample([(1, 1), (2, 2), (3, 3)])
    page.mark(1, as: .isOutdated)
    page.mark(2, as: [.isOutdated, .isSkipped])
    try await scratch.stage(page)
    try await scratch.stage(.sample([(1, 4)]))
    try await scratch.finish()
    #expect(try scratch.page(0).versions(.isOutdated) == [2, 3])
    #expect(try scratch.page(0).versions(.isSkipped) == [1, 3])
    try scratch.remove()
  }

  @Test("may be a single large record, beyond the leg's byte limit")
  func large() async throws {
    let scratch = try await scratch(byteCountMax: 1)
    let change = IncomingChange(
      record: "large", version: 1, payload: Data(repeating: 7, count: 16 << 20), isDeleted: false)
    try await scratch.stage(ChangePage([change]))
    try await scratch.finish()
    #expect(try scratch.page(0).changes() == [change])
    try scratch.remove()
  }

  @Test("lies in the area's directory while it is held, and leaves nothing there")
  func files() async throws {
    let (ada, profile) = try await store.signedInProfile("ada", in: try store.registry())
    let directory = profile.area.directory + "/scratch"
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    try Data("of another leg".utf8).write(to: URL(filePath: directory + "/data.mdb"))
    let scratch = try Scratch(
      area: profile.area, account: ada.bytes, epoch: Hub.epoch, until: 5, place: 0,
      byteCountMax: 1 << 20)
    try await scratch.stage(.sample([(1, 1)]))
    try await scratch.finish()
    #expect(try scratch.page(0).count == 1)
    #expect(FileManager.default.fileExists(atPath: directory + "/data.mdb"))
    try scratch.remove()
    #expect(!FileManager.default.fileExists(atPath: directory))
  }
}

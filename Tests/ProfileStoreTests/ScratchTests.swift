import Foundation
import HubProtocol
import ProfileStore
import Testing

@Suite("What a leg of a scan has staged")
struct ScratchTests {
  let store: TemporaryStore

  init() throws { store = try TemporaryStore() }

  @Test("is read back in batches of bounded bytes; a single larger record comes alone")
  func bounded() async throws {
    let (ada, profile) = try await store.signedInProfile("ada", in: try store.registry())
    let scratch = try Scratch(
      area: profile.area, account: ada.bytes, epoch: Hub.epoch, until: 5, place: 0,
      byteCountMax: 1 << 20)
    try await scratch.stage(
      [1_000, 1_000, 1_000, 9_000, 0].enumerated().map { number, count in
        WireRecord(
          id: RecordID("r\(number)"), version: UInt64(number + 1), deleted: false,
          payload: Data(count: count))
      })
    var batches: [[UInt64]] = []
    var changes = try scratch.batch(after: nil, limit: 500, byteCountMax: 2_500)
    while let last = changes.last {
      batches.append(changes.map(\.version))
      changes = try scratch.batch(after: last.version, limit: 500, byteCountMax: 2_500)
    }
    #expect(batches == [[1, 2], [3], [4], [5]])
    #expect(try scratch.batch(after: 2, limit: 1, byteCountMax: .max).map(\.version) == [3])
    try scratch.remove()
  }
}

import Foundation
import HubProtocol
import ProfileStore
import ProfileSync
import Testing

@Suite("What the hub wants later")
struct DeferredRecordsTests {
  @Test("waits for a pause of its own, which doubles with each time up to 5 minutes")
  func pauses() {
    var records = DeferredRecords()
    var now = Duration.zero
    for bound in [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300] {
      records.passed(deferred: ["a"], leaving: [], at: now, chance: 0.5)
      #expect(records.pause(at: now) == .seconds(bound) * 0.5)
      #expect(records.waiting(at: now) == ["a"])
      now += .seconds(bound) * 0.5
      #expect(records.waiting(at: now) == [])
      #expect(records.pause(at: now) == .zero)
      #expect(records.pause(at: now + .seconds(1)) == .zero)
    }
  }

  @Test("is not put off by passes that leave it, and begins anew once it was taken")
  func passes() {
    var records = DeferredRecords()
    records.passed(deferred: ["a", "b"], leaving: [], at: .zero, chance: 0.5)
    records.passed(deferred: ["a"], leaving: [], at: .seconds(1), chance: 0.5)
    // b was taken, c is put off, and a still waits.
    records.passed(deferred: ["c"], leaving: ["a"], at: .seconds(1.25), chance: 0.5)
    #expect(records.waiting(at: .seconds(1.5)) == ["a", "c"])
    #expect(records.waiting(at: .seconds(1.8)) == ["a"])
    #expect(records.pause(at: .seconds(1.5)) == .seconds(0.25))
    records.passed(deferred: [], leaving: [], at: .seconds(2), chance: 0.5)
    #expect(records.pause(at: .seconds(2)) == nil)
    records.passed(deferred: ["a"], leaving: [], at: .seconds(2), chance: 0.5)
    #expect(records.pause(at: .seconds(2)) == .seconds(0.5))
  }

  @Test(
    "is a record whose first mutation that was not taken is deferred, not one behind a conflict")
  func putOff() {
    let table: [([MutationStatus], Set<RecordID>)] = [
      ([.applied, .duplicate, .applied], []), ([.deferred, .deferred, .applied], ["a"]),
      ([.applied, .deferred, .deferred], ["a", "b"]), ([.conflict, .deferred, .applied], []),
      ([.rejected, .deferred, .deferred], ["b"]), ([.deferred, .conflict, .rejected], ["a"]),
    ]
    let items = (["a", "a", "b"] as [RecordID]).enumerated().map { index, record in
      PushItem(mutation: UUID(), order: UInt64(index + 1), record: record)
    }
    for (statuses, records) in table {
      #expect(PushPlan.putOff(items, statuses) == records, "\(statuses)")
    }
  }
}

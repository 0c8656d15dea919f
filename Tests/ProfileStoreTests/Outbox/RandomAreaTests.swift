import Foundation
import HubProtocol
import ProfileStore
import Testing

extension Outbox {
  @Suite("an area is what a model of it is, whatever happens in whatever order")
  struct RandomAreas {
    @Test(
      "with other devices, purges and restores at the hub",
      arguments: [1, 2, 3, 4, 5, 6, 130, 137, 162] as [UInt64])
    func everything(_ seed: UInt64) async throws {
      var run = try await RandomRun(seed, isAlone: false)
      try await run.go(steps: 160)
      try await run.bringTogether()
    }

    @Test(
      "a device that is alone is never in conflict with itself",
      arguments: [3, 33, 42, 57, 71, 88] as [UInt64])
    func alone(_ seed: UInt64) async throws {
      var run = try await RandomRun(seed, isAlone: true)
      try await run.go(steps: 160)
      #expect(run.conflicts == [])
      try await run.bringTogether()
    }
  }
}

/// One area, its model and a hub, and a seed that says what happens.
struct RandomRun {
  let store: TemporaryStore
  let ada: VerifiedAccount
  let profile: Profile
  let isAlone: Bool
  var random: Seeded
  var hub = ModelHub()
  var model = AreaModel()
  var scan: ScanState?
  var counter = 0
  /// But for those about a tombstone that the hub has purged, as the protocol says.
  var conflicts: [String] = []
  private let seed: UInt64

  init(_ seed: UInt64, isAlone: Bool) async throws {
    store = try TemporaryStore()
    (ada, profile) = try await store.signedInProfile("ada", in: try store.registry())
    random = Seeded(state: seed)
    self.seed = seed
    self.isAlone = isAlone
    // The area's first pull.
    try await begin(.first)
    while scan != nil { try await goOnWithScan() }
  }

  mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }

  mutating func record() -> RecordID { RecordID("r\(Int.random(in: 0..<20, using: &random))") }

  mutating func payload() -> String {
    counter += 1
    let count = chance(3) ? 9_000 : Int.random(in: 0..<500, using: &random)
    return "\(counter) " + String(repeating: "x", count: count)
  }

  mutating func go(steps: Int) async throws {
    for step in 0..<steps {
      let choice = Int.random(in: 0..<100, using: &random)
      try await perform(choice)
      guard try isAsModel("seed \(seed), step \(step), choice \(choice)") else { return }
    }
  }

  private mutating func perform(_ choice: Int) async throws {
    switch choice {
    case ..<28: try await edit()
    case ..<36: if !isAlone { hub.write(record(), chance(75) ? payload() : nil) }
    case ..<40:
      if !isAlone { for number in 0..<20 { hub.write(RecordID("r\(number)"), payload()) } }
    case ..<55: try await push(rejectPercent: 6, lostPercent: 15)
    case ..<67: try await pull()
    case ..<80: try await decide()
    case ..<84: try await deliverDiscards()
    case ..<86: hub.purge()
    case ..<88: hub.backUp()
    case ..<90: if !isAlone, scan == nil { try await restore() }
    case ..<92: if scan == nil { try await begin(.replay) }
    case ..<93: try await sendLostAgain()
    default: try await goOnWithScan()
    }
  }

  /// After everything was decided, sent and pulled, the device has what the hub has.
  mutating func bringTogether() async throws {
    for _ in 0..<40 {
      while scan != nil { try await goOnWithScan() }
      try await sendLostAgain()
      for entry in try profile.parked() where entry.parked?.reason != .discarding {
        try await discard(entry.mutation)
      }
      try await deliverDiscards()
      try await push(rejectPercent: 0, lostPercent: 0)
    }
    while scan != nil || profile.isBehind(hub) {
      if scan == nil { try await pull() } else { try await goOnWithScan() }
    }
    #expect(try isAsModel("seed \(seed), at the end"))
    #expect(try profile.outbox().isEmpty)
    let records = try profile.records().map { ($0.id, String(decoding: $0.payload, as: UTF8.self)) }
    #expect(Dictionary(uniqueKeysWithValues: records) == hub.live)
  }

  private func isAsModel(_ when: String) throws -> Bool {
    let records = try profile.records()
    let shown = records.map {
      let payload = String(decoding: $0.payload, as: UTF8.self)
      return ($0.id, AreaModel.Shown(payload: payload, version: $0.isPending ? nil : $0.version))
    }
    let found = Dictionary(uniqueKeysWithValues: shown)
    let expected = model.shown(hub)
    let different = Set(found.keys).union(expected.keys).filter { found[$0] != expected[$0] }
    #expect(different.isEmpty, "\(when): \(different.map(\.text).sorted())")
    let outbox = try profile.outbox().map {
      AreaModel.Entry(
        mutation: $0.mutation, record: $0.record,
        payload: $0.payload.map { String(decoding: $0, as: UTF8.self) }, isParked: $0.parked != nil)
    }
    #expect(outbox == model.outbox, "\(when): the outbox")
    let summary = try profile.pendingSummary()
    #expect(summary.count == outbox.count, "\(when): the count")
    #expect(summary.parked == outbox.count { $0.isParked }, "\(when): the parked")
    #expect(
      summary.payloadByteCount == outbox.reduce(0) { $0 + ($1.payload?.utf8.count ?? 0) },
      "\(when): the bytes")
    #expect(Set(try profile.lostAtHub()) == model.lost, "\(when): what is lost")
    let violations = try profile.area.violations()
    #expect(violations == [], "\(when)")
    #expect(records.map(\.id) == records.map(\.id).sorted(), "\(when): the order")
    return different.isEmpty && outbox == model.outbox && violations.isEmpty
  }
}

/// The same numbers for the same seed, everywhere.
struct Seeded: RandomNumberGenerator {
  var state: UInt64

  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var number = state
    number = (number ^ (number >> 30)) &* 0xbf58_476d_1ce4_e5b9
    number = (number ^ (number >> 27)) &* 0x94d0_49bb_1331_11eb
    return number ^ (number >> 31)
  }
}

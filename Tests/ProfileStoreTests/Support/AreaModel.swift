import Foundation
import HubProtocol
import ProfileStore

/// What an area that keeps the records has to show, by the contract's words and in memory.
struct AreaModel {
  struct Entry: Hashable {
    var mutation: UUID
    var record: RecordID
    /// nil: a delete.
    var payload: String?
    var isParked = false
  }

  struct Mark: Hashable {
    var epoch: UUID
    var version: UInt64
  }

  struct Shown: Hashable {
    var payload: String
    /// The hub's; nil for an edit, and for what the hub has lost.
    var version: UInt64?
  }

  var outbox: [Entry] = []
  /// The hub's versions that are here.
  private(set) var payloads: [RecordID: String] = [:]
  private(set) var newest: [RecordID: Mark] = [:]
  private(set) var lost: Set<RecordID> = []
  /// What the running scan has brought.
  var brought: Set<RecordID> = []

  /// The version as a number of the hub's epoch; nil: it compares no more.
  private func comparable(_ mark: Mark, _ hub: ModelHub) -> UInt64? {
    if mark.epoch == hub.epoch { return mark.version }
    let fork = hub.lineage.first { $0.epoch == mark.epoch }?.forkedAt ?? 0
    return mark.version <= fork ? mark.version : nil
  }

  /// A version of the hub has come: by a pull, or in a verdict.
  mutating func take(_ record: RecordID, _ version: UInt64, _ payload: String?, _ hub: ModelHub) {
    if let mark = newest[record], let known = comparable(mark, hub), known > version { return }
    newest[record] = Mark(epoch: hub.epoch, version: version)
    payloads[record] = payload
    lost.remove(record)
  }

  mutating func settle(_ mutation: UUID, _ settlement: Settlement, _ hub: ModelHub) {
    guard let index = outbox.firstIndex(where: { $0.mutation == mutation }) else { return }
    let entry = outbox[index]
    switch settlement {
    case .acknowledged(let version):
      outbox.remove(at: index)
      take(entry.record, version, entry.payload, hub)
    case .parked(let parked):
      outbox[index].isParked = true
      guard let current = parked.current, !current.isPayloadOmitted else { return }
      let payload = current.payload.map { String(decoding: $0, as: UTF8.self) }
      take(entry.record, current.version, payload, hub)
    }
  }

  /// A scan that was forced has ended: what it did not bring is deleted, or lost with an epoch.
  mutating func endForcedScan(_ hub: ModelHub) {
    for (record, mark) in newest where payloads[record] != nil && !brought.contains(record) {
      newest[record] = nil
      if comparable(mark, hub) == nil {
        lost.insert(record)
      } else {
        payloads[record] = nil
      }
    }
  }

  mutating func sentAgain(_ record: RecordID) { lost.remove(record) }

  /// The records as a person sees them.
  func shown(_ hub: ModelHub) -> [RecordID: Shown] {
    var shown: [RecordID: Shown] = [:]
    for (record, payload) in payloads {
      shown[record] = Shown(
        payload: payload, version: newest[record].flatMap { comparable($0, hub) })
    }
    for entry in outbox {
      shown[entry.record] = entry.payload.map { Shown(payload: $0, version: nil) }
    }
    return shown
  }
}

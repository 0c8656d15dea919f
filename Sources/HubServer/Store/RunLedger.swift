import Foundation
import Synchronization

/// What is noted beside the data file, so that an old copy put in its place is noticed.
///
/// Each start has a run UUID, written into the data file and here. Here the hub also leases the
/// store's transaction numbers in blocks, on the disk before the first of a block is used, and notes
/// the exact one at a clean stop. (protocol.md, *epoch*; the rule is ``DataFileOrigin``.)
final class RunLedger: Sendable {
  /// Numbers in a block: an old copy from within the last block passes for a crash, so it is small.
  static let blockCount: UInt64 = 64

  /// What the file says.
  struct Note: Codable, Hashable, Sendable {
    /// 1.
    var format = 1
    var hub: UUID
    /// More than one only while a start is under way.
    var windows: [RunWindow]
  }

  private let file: URL
  private let state = Mutex<Lease?>(nil)

  private struct Lease {
    var hub: UUID
    var run: UUID
    var last: UInt64
  }

  init(file: URL) { self.file = file }

  /// What the last run noted, or nil if there is no note.
  func read() throws(HubServerError) -> Note? {
    guard let bytes = try DurableFile.read(file) else { return nil }
    do {
      return try JSONDecoder().decode(Note.self, from: bytes)
    } catch {
      throw HubServerError(
        .storeUnusable,
        "\(file.path) cannot be understood; move it away, and every account gets a new epoch",
        cause: error)
    }
  }

  /// Before the run's first transaction: what was noted still counts, and so does the new run.
  func prepare(hub: UUID, run: UUID, transaction: UInt64, noted: [RunWindow]) throws(HubServerError)
  {
    let window = RunWindow(
      run: run, first: transaction, last: transaction + RunLedger.blockCount)
    try write(Note(hub: hub, windows: noted + [window]))
    state.withLock { $0 = Lease(hub: hub, run: run, last: window.last) }
  }

  /// After the run's first transaction: only the new run counts.
  func begin(transaction: UInt64) throws(HubServerError) {
    guard let lease = state.withLock({ $0 }) else { return }
    try write(
      Note(
        hub: lease.hub,
        windows: [RunWindow(run: lease.run, first: transaction, last: lease.last)]))
  }

  /// Inside a write transaction, before it can commit under this number.
  func lease(_ transaction: UInt64) throws(HubServerError) {
    guard var lease = state.withLock({ $0 }), transaction > lease.last else { return }
    // One writer at a time calls this, inside the store's transaction; the one before is durable.
    lease.last = transaction + RunLedger.blockCount - 1
    try write(
      Note(
        hub: lease.hub,
        windows: [RunWindow(run: lease.run, first: transaction - 1, last: lease.last)]))
    state.withLock { $0 = lease }
  }

  /// At a clean stop, after the last transaction.
  func end(transaction: UInt64) throws(HubServerError) {
    guard let lease = state.withLock({ $0 }) else { return }
    try write(
      Note(
        hub: lease.hub,
        windows: [RunWindow(run: lease.run, first: transaction, last: transaction)]))
  }

  private func write(_ note: Note) throws(HubServerError) {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .prettyPrinted]
    let bytes: Data
    do { bytes = try encoder.encode(note) } catch {
      throw HubServerError(.directoryUnusable, "\(file.path) cannot be written", cause: error)
    }
    try DurableFile.replace(file, with: bytes)
  }
}

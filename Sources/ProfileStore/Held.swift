public import Foundation
package import HubProtocol
import LMDB

/// Why a mutation is held: the hub takes others and fails on this one.
///
/// It is pending: it counts wherever a person is asked, keeps its place, and later ones of its
/// record wait with it. It is sent again by itself, alone, and is never discarded by itself.
public struct Held: Sendable, Hashable {
  /// How often the hub has failed on it alone, from 1.
  public let attempts: Int
  /// When it is tried again, by this device's clock.
  public let nextTry: Date

  package init(attempts: Int, nextTry: Date) {
    self.attempts = attempts
    self.nextTry = nextTry
  }

  /// The pause after the first attempt.
  package static let firstPause = 60.0
  /// The longest pause: one hour.
  package static let longestPause = 3_600.0

  /// The pause after an attempt, in seconds: the upper half of a bound that doubles from a minute to
  /// an hour, so that many devices do not come back at the same moment.
  /// - Parameter chance: from 0 up to 1.
  package static func pause(attempts: Int, chance: Double) -> TimeInterval {
    let doublings = min(max(attempts, 1) - 1, 16)
    let bound = min(firstPause * Double(1 << doublings), longestPause)
    return bound / 2 + bound / 2 * chance
  }

  /// Whether its time has come. A clock that was set back does not keep it for longer than a pause
  /// takes.
  package func isDue(at now: Date) -> Bool {
    nextTry <= now || nextTry.timeIntervalSince(now) > Self.longestPause
  }
}

/// On what the hub has failed, as the area stores it. A value. (Protocol's last table, row 500.)
package struct PushTrouble: Sendable, Hashable {
  /// A batch that the hub answered with 500, named by its first mutation.
  package struct Failing: Sendable, Hashable {
    package var first: UUID
    /// In how many passes in a row.
    package var passCount: Int
  }

  /// One mutation that is held.
  package struct HeldMutation: Sendable, Hashable {
    package var mutation: UUID
    package var order: UInt64
    package var record: RecordID
    package var held: Held
  }

  /// More than these are no poison: then it is the hub that fails.
  package static let heldCountMax = 64

  package var failing: Failing?
  /// In the order of their places.
  package var held: [HeldMutation] = []

  package init() {}

  package var isEmpty: Bool { failing == nil && held.isEmpty }

  package func held(_ mutation: UUID) -> Held? {
    held.first { $0.mutation == mutation }?.held
  }

  /// The hub has failed on the batch that begins with this mutation, in one more pass.
  package mutating func fail(on first: UUID) -> Int {
    let before = failing?.first == first ? failing?.passCount ?? 0 : 0
    failing = Failing(first: first, passCount: before + 1)
    return before + 1
  }

  /// The hub has failed on this mutation alone.
  package mutating func hold(
    _ mutation: UUID, order: UInt64, record: RecordID, now: Date, chance: Double
  ) {
    let attempts = (held(mutation)?.attempts ?? 0) + 1
    let pause = Held.pause(attempts: attempts, chance: chance)
    held.removeAll { $0.mutation == mutation }
    held.append(
      HeldMutation(
        mutation: mutation, order: order, record: record,
        held: Held(attempts: attempts, nextTry: now.addingTimeInterval(pause))))
    held.sort { $0.order < $1.order }
  }
}

extension PushTrouble {
  private static let form: UInt8 = 1

  init(_ bytes: RawSpan) throws(StoreError) {
    var reader = ByteReader(bytes, of: "held mutations")
    guard try reader.readUInt8() == Self.form else { throw reader.damaged }
    failing = try reader.readOptional { (reader) throws(StoreError) in
      Failing(first: try reader.readUUID(), passCount: Int(try reader.readUInt32()))
    }
    for _ in 0..<(try reader.readUInt32()) {
      let mutation = try reader.readUUID()
      let order = try reader.readUInt64()
      let record = RecordID(uncheckedBytes: try reader.readBytes())
      let attempts = Int(try reader.readUInt32())
      held.append(
        HeldMutation(
          mutation: mutation, order: order, record: record,
          held: Held(attempts: attempts, nextTry: try reader.readTime())))
    }
    try reader.requireEnd()
  }

  var encoded: [UInt8] {
    var writer = ByteWriter()
    writer.write(Self.form)
    writer.write(failing) { writer, failing in
      writer.write(failing.first)
      writer.write(UInt32(clamping: failing.passCount))
    }
    writer.write(UInt32(held.count))
    for one in held {
      writer.write(one.mutation)
      writer.write(one.order)
      writer.write(one.record.bytes)
      writer.write(UInt32(clamping: one.held.attempts))
      writer.write(one.held.nextTry)
    }
    return writer.bytes
  }
}

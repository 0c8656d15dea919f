/// What a store holds at most. Each is checked where the thing enters, before anything is written.
/// (Contract section 7.)
public struct StoreLimits: Sendable, Hashable {
  /// The longest payload of any hub, in bytes: 16 MiB.
  public static let payloadByteCountCeiling = 16 << 20
  /// The longest payload before a hub has announced its own, in bytes: 1 MiB.
  public static let payloadByteCountDefault = 1 << 20

  /// Mutations in one outbox; 1,000,000 by default. At it, enqueue throws `outboxFull`.
  public var outboxCountMax = 1_000_000
  /// Payload bytes in one outbox; 4 GiB by default.
  public var outboxByteCountMax = 4 << 30
  /// Acknowledged mutations that are kept in case the hub loses them; 1,000 by default.
  public var acknowledgedCountMax = 1_000
  /// How long acknowledged mutations are kept, in seconds; 30 days by default.
  public var acknowledgedAgeMax: Double = 30 * 86_400
  /// The map of one area, in bytes, up to which it grows by itself; 64 GiB by default.
  public var areaByteCountMax = 64 << 30
  /// Up to how many bytes in use an area is checked whole when a process first opens it, and sealed
  /// when it is closed, so that a bit that changed on the disk is an error and no wrong answer; 4 MiB
  /// by default, 0 for never. Takes just under a millisecond per MiB. The registry is checked likewise.
  public var checkedByteCountMax = 4 << 20
  /// Payload and ID bytes after which a leg of a replay ends, in bytes; 1 GiB by default. The page
  /// in hand is still taken whole.
  public var replayLegByteCountMax = 1 << 30

  /// The defaults.
  public init() {}
}

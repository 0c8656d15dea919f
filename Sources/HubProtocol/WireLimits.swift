/// The bounds of every body, whatever its message.
///
/// A reader refuses what lies beyond them before it allocates anything for it.
public enum WireLimits {
  /// The greatest sequence, version, cursor or high water: 2^53 - 1, the greatest integer that
  /// every JSON reader keeps exactly.
  public static let sequenceMax: UInt64 = (1 << 53) - 1
  /// How deep objects and lists may lie in each other; the deepest message of the protocol has 4.
  public static let depthMax = 16
  /// The most members of one object that the protocol does not know; they are passed over.
  public static let memberCountMax = 256
  /// The most records of a page and mutations of a push. (Contract section 7.)
  public static let batchCountMax = 500
  /// The longest payload in bytes, whatever a hub announces: 16 MiB. (Contract section 7.)
  public static let payloadByteCountMax = 16 << 20
  /// The longest name of a client, in bytes of UTF-8.
  public static let clientNameByteCountMax = 256
  /// The longest long poll, in seconds.
  public static let waitSecondsMax = 55
}

/// What happened, one line each: the same again for the same seed, byte for byte.
package struct EventLog: Sendable {
  /// All lines, if they are kept.
  package private(set) var lines: [String] = []
  /// FNV-1a of all lines.
  package private(set) var digest: UInt64 = 0xcbf2_9ce4_8422_2325
  /// How many lines there were.
  package private(set) var count = 0
  private let isKept: Bool

  /// - Parameter isKept: false: only ``digest`` and ``count`` are.
  package init(isKept: Bool) { self.isKept = isKept }

  /// Adds a line, without its end.
  package mutating func note(_ line: String) {
    count += 1
    for byte in line.utf8 { digest = (digest ^ UInt64(byte)) &* 0x0000_0100_0000_01b3 }
    digest = (digest ^ 10) &* 0x0000_0100_0000_01b3
    if isKept { lines.append(line) }
  }
}

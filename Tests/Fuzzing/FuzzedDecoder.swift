/// Something that is fed bytes.
protocol FuzzedDecoder {
  /// As the command line names it.
  static var name: String { get }
  init() throws
  /// What to begin with: bytes that are right.
  var seeds: [[UInt8]] { get throws }
  /// Takes bytes, right or wrong. A broken promise traps.
  func take(_ bytes: [UInt8])
}

/// Traps with a sentence unless a promise holds.
func promise(_ isKept: Bool, _ sentence: @autoclosure () -> String) {
  if !isKept { fatalError(sentence()) }
}

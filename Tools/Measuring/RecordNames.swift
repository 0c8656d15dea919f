/// IDs of records, for stores whose keys are text: 16 ASCII characters each, in order, as long as the
/// keys of ``Documents``.
///
/// The memory stays for the life of the process, so that C may be given it.
package final class RecordNames: Sendable {
  package static let byteCount = 16

  package let count: Int
  // SAFETY: written in the initialiser only.
  nonisolated(unsafe) package let bytes: UnsafeBufferPointer<UInt8>

  /// A number that counts on, as time would, and chance, both in hexadecimal digits.
  package init(count: Int, seed: UInt64 = Documents.seed) {
    var random = SplitMix64(seed: seed)
    let digits = Array("0123456789abcdef".utf8)
    let memory = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: count * Self.byteCount)
    for number in 0..<count {
      let word = UInt64(UInt32(number)) << 32 | random.next() >> 32
      for place in 0..<Self.byteCount {
        memory.initializeElement(
          at: number * Self.byteCount + place, to: digits[Int(word >> (60 - 4 * place)) & 15])
      }
    }
    self.count = count
    bytes = UnsafeBufferPointer(memory)
  }

  /// The bytes of one.
  package subscript(index: Int) -> [UInt8] {
    Array(bytes[index * Self.byteCount..<(index + 1) * Self.byteCount])
  }
}

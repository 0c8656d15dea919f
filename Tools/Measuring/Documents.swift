package import Foundation

/// Numbers from a seed, the same everywhere: SplitMix64.
package struct SplitMix64: RandomNumberGenerator {
  private var state: UInt64

  package init(seed: UInt64) { state = seed }

  package mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var word = state
    word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
    word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
    return word ^ (word >> 31)
  }

  /// A number below a bound. The bias is below one in 2^40 for the bounds used here.
  package mutating func next(below bound: Int) -> Int { Int(next() % UInt64(bound)) }

  /// The numbers below a count, in an order of this generator.
  package mutating func permutation(of count: Int) -> [UInt32] {
    var numbers = Array(0..<UInt32(count))
    for last in stride(from: count - 1, to: 0, by: -1) {
      numbers.swapAt(last, next(below: last + 1))
    }
    return numbers
  }
}

/// Records that are the same in every run: keys of 16 bytes in order, values of 200 to 500 bytes of
/// JSON.
///
/// The memory stays for the life of the process, so that C may be given it.
package final class Documents: Sendable {
  package static let byteCounts = 200...500
  package static let seed: UInt64 = 0x484F_4C44_4641_5354

  package let count: Int
  // SAFETY: written in the initialiser only.
  nonisolated(unsafe) package let keys: UnsafeBufferPointer<UUID>
  nonisolated(unsafe) package let values: UnsafeRawBufferPointer
  /// Where each value begins; one more says where the last one ends.
  nonisolated(unsafe) package let offsets: UnsafeBufferPointer<UInt32>
  /// Each record's key and value in one piece, as a downloaded page holds them.
  nonisolated(unsafe) package let frames: UnsafeRawBufferPointer

  /// - Parameter isSwapped: two words of each value change places: another value, of the same length
  ///   and with the same XOR of its words.
  package init(count: Int, seed: UInt64 = Documents.seed, isSwapped: Bool = false) {
    var random = SplitMix64(seed: seed)
    var keys: [UUID] = []
    var offsets: [UInt32] = [0]
    var bytes: [UInt8] = []
    bytes.reserveCapacity(count * 360)
    for number in 0..<count {
      keys.append(Self.key(number, &random))
      Self.appendDocument(number, isSwapped, &random, to: &bytes)
      offsets.append(UInt32(bytes.count))
    }
    self.count = count
    self.keys = Self.kept(keys)
    self.offsets = Self.kept(offsets)
    values = UnsafeRawBufferPointer(Self.kept(bytes))
    frames = Self.framed(keys, offsets, bytes)
  }

  /// The bytes of a value.
  @inlinable
  package func value(_ index: Int) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(rebasing: values[Int(offsets[index])..<Int(offsets[index + 1])])
  }

  /// The bytes of a record's key and value.
  @inlinable
  package func frame(_ index: Int) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(
      rebasing: frames[
        Int(offsets[index]) + 16 * index..<Int(offsets[index + 1]) + 16 * (index + 1)])
  }

  private static func framed(
    _ keys: [UUID], _ offsets: [UInt32], _ bytes: [UInt8]
  ) -> UnsafeRawBufferPointer {
    var frames: [UInt8] = []
    frames.reserveCapacity(bytes.count + 16 * keys.count)
    for (index, key) in keys.enumerated() {
      withUnsafeBytes(of: key.uuid) { frames.append(contentsOf: $0) }
      frames.append(contentsOf: bytes[Int(offsets[index])..<Int(offsets[index + 1])])
    }
    return UnsafeRawBufferPointer(kept(frames))
  }

  private static func kept<Element>(_ elements: [Element]) -> UnsafeBufferPointer<Element> {
    let memory = UnsafeMutableBufferPointer<Element>.allocate(capacity: elements.count)
    _ = memory.initialize(fromContentsOf: elements)
    return UnsafeBufferPointer(memory)
  }

  /// A number that counts on, as time would, and 8 bytes of chance.
  private static func key(_ number: Int, _ random: inout SplitMix64) -> UUID {
    let chance = random.next()
    // Written byte by byte: Swift 6.3.1 with -O reads a `uuid_t` wrongly out of an array of words
    // that it keeps on the stack.
    var bytes = UUID(uuid: (0x01, 0x91, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)).uuid
    withUnsafeMutableBytes(of: &bytes) { bytes in
      for place in 0..<4 { bytes[7 - place] = UInt8(truncatingIfNeeded: number >> (8 * place)) }
      for place in 0..<8 { bytes[8 + place] = UInt8(truncatingIfNeeded: chance >> (8 * place)) }
    }
    return UUID(uuid: bytes)
  }

  private static let words = [
    "harbour", "lantern", "meadow", "quiet", "river", "stone", "timber", "velvet", "window",
    "winter", "autumn", "bridge", "copper", "daring", "ember", "forest",
  ]

  /// `{"key":"` is 8 bytes long, so that the hexadecimal number behind it is two words of 8.
  private static func appendDocument(
    _ number: Int, _ isSwapped: Bool, _ random: inout SplitMix64, to bytes: inout [UInt8]
  ) {
    let start = bytes.count
    let end = start + byteCounts.lowerBound + random.next(below: byteCounts.count)
    let chance = random.next()
    let high = hexadecimal(UInt32(truncatingIfNeeded: chance >> 32))
    let low = hexadecimal(UInt32(truncatingIfNeeded: chance))
    let done = chance & 1 == 0
    bytes += Array(
      #"{"key":"\#(isSwapped ? low + high : high + low)","number":\#(number),"done":\#(done),"text":""#
        .utf8)
    while bytes.count < end - 2 {
      bytes += Array(words[random.next(below: words.count)].utf8)
      bytes.append(UInt8(ascii: " "))
    }
    bytes.removeLast(bytes.count - (end - 2))
    bytes += Array(#""}"#.utf8)
  }

  private static func hexadecimal(_ number: UInt32) -> String {
    let digits = String(number, radix: 16)
    return String(repeating: "0", count: 8 - digits.count) + digits
  }
}

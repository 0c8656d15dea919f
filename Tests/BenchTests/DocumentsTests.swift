import Foundation
import Measuring
import Testing

@Suite("The records of the benchmark")
struct DocumentsTests {
  private let documents = Documents(count: 1_000)

  @Test("come from a generator whose numbers are published")
  func generator() {
    var random = SplitMix64(seed: 1_234_567)
    let numbers = (0..<5).map { _ in random.next() }
    #expect(
      numbers == [
        6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423,
        4_593_380_528_125_082_431, 16_408_922_859_458_223_821,
      ])
  }

  @Test("are the same bytes in every run and on every machine")
  func digest() {
    var digest: UInt64 = 0xCBF2_9CE4_8422_2325
    for byte in documents.frames { digest = (digest ^ UInt64(byte)) &* 0x100_0000_01B3 }
    #expect(documents.frames.count == 364_995)
    #expect(digest == 9_944_911_210_938_973_833)
  }

  @Test("are JSON of 200 to 500 bytes under ascending keys of 16")
  func form() throws {
    for index in 0..<documents.count {
      let value = documents.value(index)
      #expect(Documents.byteCounts.contains(value.count))
      let object = try JSONSerialization.jsonObject(with: Data(value)) as? [String: Any]
      #expect(object?["number"] as? Int == index)
      guard index > 0 else { continue }
      let keys = [documents.keys[index - 1], documents.keys[index]].map(Self.bytes)
      #expect(keys[0].lexicographicallyPrecedes(keys[1]))
    }
  }

  @Test("have a frame that is the key and the value")
  func frames() {
    for index in [0, 1, 999] {
      #expect(
        Array(documents.frame(index))
          == Self.bytes(documents.keys[index]) + Array(documents.value(index)))
    }
  }

  @Test("have a second set: other values of the same length and the same XOR of words")
  func swapped() throws {
    let swapped = Documents(count: 1_000, isSwapped: true)
    for index in 0..<documents.count {
      let (one, other) = (documents.value(index), swapped.value(index))
      #expect(documents.keys[index] == swapped.keys[index])
      #expect(one.count == other.count)
      #expect(Array(one) != Array(other))
      #expect(Self.touch(one) == Self.touch(other))
      #expect(throws: Never.self) { try JSONSerialization.jsonObject(with: Data(other)) }
    }
  }

  @Test("have IDs that are text, ascend, and are as long as their keys")
  func names() {
    let names = RecordNames(count: 1_000)
    for index in 0..<1_000 {
      #expect(names[index].count == 16)
      #expect(names[index].allSatisfy { "0123456789abcdef".utf8.contains($0) })
      guard index > 0 else { continue }
      #expect(names[index - 1].lexicographicallyPrecedes(names[index]))
    }
    #expect(String(decoding: names[999].prefix(8), as: UTF8.self) == "000003e7")
  }

  @Test("are shuffled to an order that has each once")
  func permutation() {
    var random = SplitMix64(seed: 1)
    let order = random.permutation(of: 1_000)
    #expect(order != Array(0..<1_000))
    #expect(order.sorted() == Array(0..<1_000))
  }

  private static func bytes(_ key: UUID) -> [UInt8] {
    withUnsafeBytes(of: key.uuid) { Array($0) }
  }

  /// What the benchmark's C function does.
  private static func touch(_ value: UnsafeRawBufferPointer) -> UInt64 {
    var digest: UInt64 = 0
    for (place, byte) in value.enumerated() { digest ^= UInt64(byte) << (8 * UInt64(place % 8)) }
    return digest
  }
}

import Foundation
import HubProtocol
import Testing

@Suite("Records that are encoded where they lie")
struct EncodedRecordsTests {
  @Test("make the very page that the same records make as values", arguments: [0, 1, 23, 24, 500])
  func same(count: Int) throws {
    var generator = SystemRandomNumberGenerator()
    var page = ChangesPage(
      hub: UUID(), epoch: UUID(), account: try AccountID("ä"), after: 23, next: 1 << 40,
      more: true, highWater: WireLimits.sequenceMax, records: [])
    var encoded = EncodedRecords(byteCountHint: 10)
    var records: [WireRecord] = []
    for number in 0..<count {
      let length = [0, 1, 23, 24, 255, 256, 70_000][number % 7]
      let payload = (0..<length).map { _ in UInt8.random(in: 0...255, using: &generator) }
      let record = WireRecord(
        id: RecordID(String(repeating: "é", count: number % 200 + 1)),
        version: [1, 24, 256, 1 << 16, 1 << 32, WireLimits.sequenceMax][number % 6],
        deleted: number % 5 == 4, payload: number % 5 == 4 ? nil : Data(payload), client: UUID(),
        mutation: UUID())
      records.append(record)
      encoded.append(
        id: record.id.bytes.span.bytes, version: record.version,
        payload: record.deleted ? nil : payload.span.bytes, client: try #require(record.client),
        mutation: try #require(record.mutation))
    }
    #expect(encoded.count == count && encoded.lastVersion == records.last?.version)
    let bytes = page.encoded(with: encoded)
    page.records = records
    #expect(bytes == page.encoded(as: .cbor))
    #expect(try ChangesPage(decoding: bytes, as: .cbor) == page)
  }

  @Test("write a UUID in its one spelling, every byte of it")
  func uuid() throws {
    for first in stride(from: 0, to: 256, by: 16) {
      let bytes = (first..<first + 16).map { UInt8($0) }
      let uuid = bytes.withUnsafeBytes { UUID(uuid: $0.loadUnaligned(as: uuid_t.self)) }
      #expect(uuid.wireText == uuid.uuidString.lowercased())
      #expect(UUID(wireText: uuid.wireText) == uuid)
    }
  }

  @Test("read a UUID in no other spelling, whichever byte is another")
  func otherSpellings() throws {
    let right = Array("0b9c3e0a-4a86-4f6a-8f0e-2f7c5a1d9e1f".utf8)
    let uuid = try #require(UUID(wireText: String(decoding: right, as: UTF8.self)))
    #expect(uuid.uuidString.lowercased() == String(decoding: right, as: UTF8.self))
    let digits = Set("0123456789abcdef".utf8)
    for place in right.indices {
      for byte in 0...127 as ClosedRange<UInt8> {
        var text = right
        text[place] = byte
        let isRight =
          right[place] == UInt8(ascii: "-") ? byte == right[place] : digits.contains(byte)
        let read = UUID(wireText: String(decoding: text, as: UTF8.self))
        #expect((read != nil) == isRight, "byte \(byte) at \(place)")
        if isRight { #expect(read?.wireText == String(decoding: text, as: UTF8.self)) }
      }
    }
    for length in [0, 1, 35, 37] {
      #expect(UUID(wireText: String(repeating: "0", count: length)) == nil)
    }
  }
}

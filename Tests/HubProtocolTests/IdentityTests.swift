import Foundation
import HubProtocol
import Testing

@Suite("An ID on the wire")
struct IdentityTests {
  /// One letter in two spellings that Swift's `==` on strings takes for one.
  private let composed = "caf\u{e9}"
  private let decomposed = "cafe\u{301}"

  @Test("keeps its bytes, so that twins of Unicode stay two", arguments: WireFormat.allCases)
  func twins(_ format: WireFormat) throws {
    #expect(composed == decomposed)
    let samples = try Samples()
    var page = samples.page
    page.records = [composed, decomposed, "CAFÉ", "a/../b", "nul\u{0}", "😀"].enumerated().map {
      WireRecord(
        id: RecordID($0.element), version: UInt64($0.offset), deleted: false, payload: Data())
    }
    let read = try ChangesPage(decoding: page.encoded(as: format), as: format)
    #expect(read.records.map(\.id.bytes) == page.records.map(\.id.bytes))
    #expect(Set(read.records.map(\.id)).count == page.records.count)

    var answer = samples.clientAnswer
    answer.account = try AccountID(composed)
    let account = try ClientAnswer(decoding: answer.encoded(as: format), as: format).account
    #expect(account == (try AccountID(composed)))
    #expect(account != (try AccountID(decomposed)))
  }

  @Test("is asked for and asserted by its bytes")
  func inRequests() throws {
    let targets = try [composed, decomposed].map { text in
      let request = HubCall.record(id: RecordID(text)).request(
        token: "t", account: try AccountID(text), format: .cbor)
      return [request.target] + request.headers.map(\.value)
    }
    #expect(targets[0][0] == "/v1/records?id=caf%C3%A9")
    #expect(targets[1][0] == "/v1/records?id=cafe%CC%81")
    #expect(targets[0].contains("caf%C3%A9"))
    #expect(targets[1].contains("cafe%CC%81"))
  }
}

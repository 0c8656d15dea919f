import Foundation
import HubProtocol
import Testing

@Suite("A message that was encoded")
struct RoundTripTests {
  private let samples: Samples

  init() throws { samples = try Samples() }

  private func expectSame<Message: HubMessage & Equatable>(
    _ message: Message, _ format: WireFormat, sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let body = message.encoded(as: format)
    #expect(
      try Message(decoding: body, as: format) == message, sourceLocation: sourceLocation)
    #expect(message.encoded(as: format) == body, sourceLocation: sourceLocation)
  }

  @Test("is read back as the same value", arguments: WireFormat.allCases)
  func everyMessage(_ format: WireFormat) throws {
    try expectSame(samples.session, format)
    try expectSame(ClientRegistration(name: ""), format)
    try expectSame(ClientRegistration(name: String(repeating: "é", count: 128)), format)
    try expectSame(samples.clientAnswer, format)
    try expectSame(samples.page, format)
    try expectSame(samples.recordAnswer, format)
    try expectSame(samples.push, format)
    try expectSame(samples.pushAnswer, format)
  }

  @Test("is read back without what it did not have", arguments: WireFormat.allCases)
  func leastMessages(_ format: WireFormat) throws {
    var session = samples.session
    session.lineage = []
    try expectSame(session, format)
    var page = samples.page
    page.records = []
    page.more = false
    try expectSame(page, format)
    var answer = samples.recordAnswer
    answer.record = nil
    try expectSame(answer, format)
    answer.record = samples.tombstone
    try expectSame(answer, format)
    var push = samples.push
    push.mutations = []
    try expectSame(push, format)
    var pushAnswer = samples.pushAnswer
    pushAnswer.results = []
    try expectSame(pushAnswer, format)
  }

  @Test("keeps a payload of no bytes apart from none", arguments: WireFormat.allCases)
  func emptyPayload(_ format: WireFormat) throws {
    var push = samples.push
    push.mutations = [samples.put(payload: Data(), base: nil)]
    let read = try PushRequest(decoding: push.encoded(as: format), as: format)
    #expect(read.mutations[0].payload == Data())

    push.mutations = [samples.put(payload: nil, base: nil)]
    let error = try wireError(PushRequest.self, push.encoded(as: format), format)
    #expect(error.code == .missing)
    #expect(error.path == "mutations[0].payload")
    #expect(error.index == 0)

    var page = samples.page
    page.records = [WireRecord(id: "a", version: 1, deleted: false, payload: Data())]
    try expectSame(page, format)
  }

  @Test("keeps payloads of every length up to 300 bytes", arguments: WireFormat.allCases)
  func payloadLengths(_ format: WireFormat) throws {
    var page = samples.page
    page.records = (0...300).map { count in
      WireRecord(
        id: RecordID("r\(count)"), version: UInt64(count), deleted: false,
        payload: Data((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 37 &+ count) }))
    }
    try expectSame(page, format)
  }

  @Test("keeps integers at every boundary of their encoding", arguments: WireFormat.allCases)
  func integerBoundaries(_ format: WireFormat) throws {
    let boundaries: [UInt64] = [
      0, 23, 24, 255, 256, 65_535, 65_536, 4_294_967_295, 4_294_967_296, WireLimits.sequenceMax,
    ]
    for value in boundaries {
      var page = samples.page
      page.highWater = value
      page.records[0].version = value
      try expectSame(page, format)
    }
  }

  @Test("has payload bytes that are a slice of other data", arguments: WireFormat.allCases)
  func slicedPayload(_ format: WireFormat) throws {
    var push = samples.push
    let slice = Data([9, 8, 7, 6, 5])[1..<4]
    push.mutations = [samples.put(payload: slice, base: nil)]
    let read = try PushRequest(decoding: push.encoded(as: format), as: format)
    let payload = try #require(read.mutations[0].payload)
    #expect(payload == Data([8, 7, 6]))
    #expect(payload.startIndex == 0)
    // A body may itself be a slice.
    let body = Data([0]) + push.encoded(as: format)
    #expect(try PushRequest(decoding: body.dropFirst(), as: format) == push)
  }

  @Test("is read back as the same problem")
  func problem() throws {
    let problem = samples.problem
    #expect(try HubProblem(decoding: problem.encoded()) == problem)
    let least = HubProblem(title: "", status: 500, detail: "", code: "internal")
    #expect(try HubProblem(decoding: least.encoded()) == least)
    let bare = try HubProblem(decoding: Data(#"{"status":500,"code":"new_code","x":[1]}"#.utf8))
    #expect(bare == HubProblem(title: "", status: 500, detail: "", code: "new_code"))
  }
}

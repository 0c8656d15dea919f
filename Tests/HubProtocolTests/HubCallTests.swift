import Foundation
import HubProtocol
import Testing

@Suite("The request of a call")
struct HubCallTests {
  private let samples: Samples

  init() throws { samples = try Samples() }

  private func request(
    _ call: HubCall, format: WireFormat = .cbor, limits: HubLimits = HubLimits()
  ) -> HubRequest {
    call.request(token: "to.ke.n", account: samples.account, format: format, limits: limits)
  }

  @Test("for a session asserts no account, even if one is given")
  func session() {
    let nonce = samples.mutation
    for account in [nil, samples.account] {
      let request = HubCall.session(nonce: nonce).request(
        token: "to.ke.n", account: account, format: .json)
      #expect(request.method == "GET")
      #expect(request.target == "/v1/session?nonce=00000000-0000-4000-8000-0000000000d1")
      #expect(
        request.headers == [
          HeaderField("Authorization", "Bearer to.ke.n"), HeaderField("Accept", "application/json"),
        ])
      #expect(request.body == nil)
    }
  }

  @Test("for a registration carries the name, and the account percent-encoded")
  func register() throws {
    let request = request(.registerClient(client: samples.client, name: "box"))
    #expect(request.method == "PUT")
    #expect(request.target == "/v1/clients/00000000-0000-4000-8000-0000000000c1")
    #expect(
      request.headers == [
        HeaderField("Authorization", "Bearer to.ke.n"),
        HeaderField("Holdfast-Account", "anna%2F%C3%A9"),
        HeaderField("Accept", "application/cbor"), HeaderField("Content-Type", "application/cbor"),
      ])
    let body = try #require(request.body)
    #expect(try ClientRegistration(decoding: body, as: .cbor).name == "box")
  }

  @Test("for changes says what to pull, and nothing that has no effect")
  func changes() {
    let epoch = "00000000-0000-4000-8000-0000000000e1"
    #expect(
      request(.changes(ChangesQuery(after: 7, epoch: samples.epoch))).target
        == "/v1/changes?after=7&epoch=\(epoch)&limit=500")
    #expect(
      request(
        .changes(
          ChangesQuery(after: 0, epoch: samples.epoch, limit: 9_000, until: 8, waitSeconds: 99))
      ).target == "/v1/changes?after=0&epoch=\(epoch)&limit=500&until=8&wait=55")
    #expect(
      request(.changes(ChangesQuery(after: 0, epoch: samples.epoch, limit: 0, waitSeconds: -3)))
        .target == "/v1/changes?after=0&epoch=\(epoch)&limit=1")
  }

  @Test("for a push carries it in the form that is named", arguments: WireFormat.allCases)
  func push(_ format: WireFormat) throws {
    let request = request(.push(samples.push), format: format)
    #expect(request.method == "POST")
    #expect(request.target == "/v1/mutations")
    #expect(request.headers.contains(HeaderField("Content-Type", format.rawValue)))
    #expect(
      try PushRequest(decoding: try #require(request.body), as: format) == samples.push)
  }

  @Test("holds the token in no place but its header")
  func tokenPlace() {
    for call in [
      HubCall.session(nonce: samples.hub), .record(id: "a"), .push(samples.push),
      .registerClient(client: samples.client, name: "a"),
      .changes(ChangesQuery(after: 0, epoch: samples.epoch)), .events,
    ] {
      let request = request(call)
      #expect(!request.target.contains("to.ke.n"))
      #expect(
        request.headers.filter { $0.value.contains("to.ke.n") }.map(\.name) == ["Authorization"])
    }
  }

  @Test("lets nothing move for longer in a long poll")
  func longPoll() {
    let plain = request(.changes(ChangesQuery(after: 0, epoch: samples.epoch)))
    let poll = request(.changes(ChangesQuery(after: 0, epoch: samples.epoch, waitSeconds: 55)))
    #expect(poll.stallLimit == plain.stallLimit + .seconds(55))
    #expect(poll.timeout > poll.stallLimit)
    #expect(poll.mayWait && !plain.mayWait)
    // A wait counts only without an end.
    let bounded = request(
      .changes(ChangesQuery(after: 0, epoch: samples.epoch, until: 9, waitSeconds: 55)))
    #expect(!bounded.mayWait)
  }

  @Test("asks for events in their own form, and lets them come for long")
  func events() {
    for format in WireFormat.allCases {
      let request = request(.events, format: format)
      #expect(request.method == "GET" && request.target == "/v1/events" && request.body == nil)
      #expect(request.headers.filter { $0.name == "Accept" }.map(\.value) == ["text/event-stream"])
      // Three comments that are missing, one every 15 seconds.
      #expect(request.stallLimit == .seconds(45))
      #expect(request.timeout >= .seconds(3_600) && request.mayWait)
    }
  }

  @Test("admits the largest answer that the limits allow", arguments: WireFormat.allCases)
  func answerSize(_ format: WireFormat) {
    let limits = HubLimits(pullBytes: 100_000, payloadBytes: 300_000)
    // Control characters take the most room in JSON.
    let id = RecordID(String(repeating: "\u{1}", count: RecordID.byteCountMax))
    let large = WireRecord(
      id: id, version: WireLimits.sequenceMax, deleted: false,
      payload: Data(repeating: 0xff, count: 300_000), client: samples.client,
      mutation: samples.mutation)
    var page = samples.page
    page.records = [large]
    let query = ChangesQuery(after: 0, epoch: samples.epoch)
    let pageMax = request(.changes(query), format: format, limits: limits).answerByteCountMax
    #expect(page.encoded(as: format).count <= pageMax)
    #expect(pageMax < 4 << 20)

    var small = large
    small.payload = Data(repeating: 0xff, count: 100)
    page.records = Array(repeating: small, count: 500)
    #expect(page.encoded(as: format).count <= pageMax)

    var answer = samples.pushAnswer
    answer.results = Array(
      repeating: MutationResult(
        mutation: samples.mutation, status: .rejected, code: "bad_base",
        detail: String(repeating: "d", count: 200), current: small), count: 499)
    answer.results.append(
      MutationResult(mutation: samples.mutation, status: .conflict, current: large))
    var push = samples.push
    push.mutations = Array(repeating: samples.put(payload: Data(), base: nil), count: 500)
    let pushMax = request(.push(push), format: format, limits: limits).answerByteCountMax
    #expect(answer.encoded(as: format).count <= pushMax)

    let recordMax = request(.record(id: id), format: format, limits: limits).answerByteCountMax
    var recordAnswer = samples.recordAnswer
    recordAnswer.record = large
    #expect(recordAnswer.encoded(as: format).count <= recordMax)
  }

  @Test("admits no more than a fixed size, whatever a hub announces")
  func answerSizeOfGreedyHub() {
    let limits = HubLimits(
      pullBytes: Int(WireLimits.sequenceMax), payloadBytes: Int(WireLimits.sequenceMax))
    for call in [
      HubCall.changes(ChangesQuery(after: 0, epoch: samples.epoch)), .record(id: "a"),
      .push(samples.push),
    ] {
      #expect(
        request(call, format: .json, limits: limits).answerByteCountMax
          <= HubCall.answerByteCountMax)
    }
  }

  @Test("traps rather than leave the account to the token")
  func withoutAccount() async {
    await #expect(processExitsWith: .failure) {
      _ = HubCall.record(id: "a").request(token: "t", account: nil, format: .json)
    }
  }
}

import Foundation
import HubProtocol
import Testing

/// The bytes themselves, so that neither side changes its form unseen. The CBOR was read and
/// written again by an implementation that is not ours, with the same bytes.
@Suite("The bytes of a message")
struct SnapshotTests {
  private let samples: Samples

  init() throws { samples = try Samples() }

  private func page() throws -> ChangesPage {
    ChangesPage(
      hub: samples.hub, epoch: samples.epoch, account: try AccountID("é"), after: 24, next: 300,
      more: false, highWater: 1 << 40,
      records: [
        WireRecord(id: "a", version: 300, deleted: false, payload: Data([1, 2, 255])),
        WireRecord(
          id: "b\n", version: 299, deleted: true, payload: nil, client: samples.client),
      ])
  }

  private var push: PushRequest {
    PushRequest(
      client: samples.client, epoch: samples.epoch, cursor: 23,
      mutations: [samples.put(payload: Data(), base: .version(0))])
  }

  @Test("of a page in JSON are these")
  func pageJSON() throws {
    let expected = #"""
      {"hub":"00000000-0000-4000-8000-0000000000aa"\#
      ,"epoch":"00000000-0000-4000-8000-0000000000e1","account":"é","after":24,"next":300\#
      ,"more":false,"highWater":1099511627776,"records":[{"id":"a","version":300\#
      ,"deleted":false,"payload":"AQL/"},{"id":"b\u000a","version":299,"deleted":true\#
      ,"payload":null,"client":"00000000-0000-4000-8000-0000000000c1"}]}
      """#
    #expect(json(try page()) == expected)
  }

  @Test("of a push in JSON are these")
  func pushJSON() {
    let expected = #"""
      {"client":"00000000-0000-4000-8000-0000000000c1"\#
      ,"epoch":"00000000-0000-4000-8000-0000000000e1","cursor":23\#
      ,"mutations":[{"mutation":"00000000-0000-4000-8000-0000000000d1","order":1\#
      ,"kind":"put","id":"a","base":0,"firstSent":22,"payload":""}]}
      """#
    #expect(json(push) == expected)
  }

  @Test("of a page in CBOR are these")
  func pageCBOR() throws {
    let expected = """
      a863687562782430303030303030302d303030302d343030302d383030302d30303030303030303030616165
      65706f6368782430303030303030302d303030302d343030302d383030302d30303030303030303030653167
      6163636f756e7462c3a96561667465721818646e65787419012c646d6f7265f4696869676857617465721b00
      00010000000000677265636f72647382a462696461616776657273696f6e19012c6764656c65746564f46770
      61796c6f6164430102ffa562696462620a6776657273696f6e19012b6764656c65746564f5677061796c6f61
      64f666636c69656e74782430303030303030302d303030302d343030302d383030302d303030303030303030
      306331
      """
    #expect(try page().encoded(as: .cbor).hexText == (try hex(expected)).hexText)
  }

  @Test("of a push in CBOR are these")
  func pushCBOR() throws {
    let expected = """
      a466636c69656e74782430303030303030302d303030302d343030302d383030302d30303030303030303030
      63316565706f6368782430303030303030302d303030302d343030302d383030302d30303030303030303030
      653166637572736f7217696d75746174696f6e7381a7686d75746174696f6e782430303030303030302d3030
      30302d343030302d383030302d303030303030303030306431656f7264657201646b696e6463707574626964
      616164626173650069666972737453656e7416677061796c6f616440
      """
    #expect(push.encoded(as: .cbor).hexText == (try hex(expected)).hexText)
  }

  @Test("of a problem are these, and never CBOR")
  func problem() {
    let problem = HubProblem(
      title: "Bad mutation", status: 400, detail: "see \"index\"", code: "bad_mutation", index: 2)
    #expect(
      String(decoding: problem.encoded(), as: UTF8.self) == #"""
        {"type":"about:blank","title":"Bad mutation","status":400,\#
        "detail":"see \"index\"","code":"bad_mutation","index":2}
        """#)
  }
}

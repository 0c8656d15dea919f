import Foundation
import HubProtocol
import Testing

@Suite("A JSON body with something wrong in it")
struct JSONRefusalTests {
  private let samples: Samples

  init() throws { samples = try Samples() }

  /// A change to the JSON of a push, and the error that it must give.
  struct Case: CustomTestStringConvertible, Sendable {
    let from: String
    let to: String
    let code: WireError.Code
    let path: String
    let index: Int?

    init(_ from: String, _ to: String, _ code: WireError.Code, _ path: String, index: Int? = nil) {
      self.from = from
      self.to = to
      self.code = code
      self.path = path
      self.index = index
    }

    var testDescription: String { "\(from) -> \(to)" }
  }

  private static let cases: [Case] = [
    Case(#""cursor":23,"#, "", .missing, "cursor"),
    Case(#""cursor":23"#, #""cursor":null"#, .illTyped, "cursor"),
    Case(#""cursor":23"#, #""cursor":"23""#, .illTyped, "cursor"),
    Case(#""cursor":23"#, #""cursor":23.0"#, .illTyped, "cursor"),
    Case(#""cursor":23"#, #""cursor":2e1"#, .illTyped, "cursor"),
    Case(#""cursor":23"#, #""cursor":-1"#, .outOfRange, "cursor"),
    Case(#""cursor":23"#, #""cursor":-0"#, .outOfRange, "cursor"),
    Case(#""cursor":23"#, #""cursor":9007199254740992"#, .outOfRange, "cursor"),
    Case(#""cursor":23"#, #""cursor":99999999999999999999999"#, .outOfRange, "cursor"),
    Case(#""cursor":23"#, #""cursor":023"#, .malformed, "cursor"),
    Case(#""cursor":23"#, #""cursor":true"#, .illTyped, "cursor"),
    Case(#""cursor":23"#, #""cursor":}"#, .malformed, "cursor"),
    Case(#""cursor":23"#, #""cursor":23,"cursor":23"#, .duplicateMember, "cursor"),
    Case(#""cursor":23"#, #""cursor":23,"x":1,"x":2"#, .duplicateMember, ""),
    Case(#""cursor":23"#, #""cursor":23,"x":1,"\u0078":2"#, .duplicateMember, ""),
    Case(#""cursor":23"#, #""cursor":23,"x":{"y":1,"y":1}"#, .duplicateMember, ""),
    Case(#""cursor":23,"#, #""cursor":23,,"#, .malformed, ""),
    Case(#""cursor":23,"#, #""cursor":23 "#, .malformed, ""),
    Case(#""cursor":23"#, #""cursor" 23"#, .malformed, ""),
    Case(#""cursor":23"#, #"cursor:23"#, .malformed, ""),
    Case(#""cursor":23"#, #""cursor":23,"x":tru"#, .malformed, ""),
    Case(#""cursor":23"#, #""cursor":23,"x":1."#, .malformed, ""),
    Case(#""cursor":23"#, #""cursor":23,"x":"\q""#, .malformed, ""),
    Case(#""cursor":23"#, #""cursor":23,"x":"\ud800""#, .notUTF8, ""),
    Case(#""cursor":23"#, #""cursor":23,"x":"\ud800\u0041""#, .notUTF8, ""),
    Case(#""cursor":23"#, #""cursor":23,"x":"\udc00\ud800""#, .notUTF8, ""),
    Case("00000000c1", "00000000C1", .illTyped, "client"),
    Case("8000-0000000000c1", "80000000000000c1", .illTyped, "client"),
    Case("00000000c1", "00000000c", .illTyped, "client"),
    Case("00000000c1", "00000000cg", .illTyped, "client"),
    Case(#""order":4"#, #""order":[4]"#, .illTyped, "mutations[3].order", index: 3),
    Case(#""kind":"delete""#, #""kind":"Delete""#, .illTyped, "mutations[3].kind", index: 3),
    Case(#""kind":"delete""#, #""kind":"put""#, .missing, "mutations[3].payload", index: 3),
    Case(
      #""kind":"delete""#, #""kind":"delete","payload":"""#, .unexpected,
      "mutations[3].payload", index: 3),
    Case(#""id":"ä""#, #""id":"""#, .outOfRange, "mutations[3].id", index: 3),
    Case(#""id":"ä""#, #""id":7"#, .illTyped, "mutations[3].id", index: 3),
    Case(#""base":255"#, #""base":[]"#, .illTyped, "mutations[3].base", index: 3),
    Case(#""base":255"#, #""base":"x""#, .illTyped, "mutations[3].base", index: 3),
    Case(
      #""base":255"#, #""base":255,"base":255"#, .duplicateMember, "mutations[3].base", index: 3),
    Case(#""firstSent":0"#, #""firstSent":null"#, .illTyped, "mutations[3].firstSent", index: 3),
    Case(#","firstSent":0"#, "", .missing, "mutations[3].firstSent", index: 3),
    Case(#""aGVsbG8=""#, #""aGVsbG8""#, .notCanonical, "mutations[0].payload", index: 0),
    Case(#""aGVsbG8=""#, #""aGVsbG9=""#, .notCanonical, "mutations[0].payload", index: 0),
    Case(#""aGVsbG8=""#, #""aGVs bG8=""#, .notCanonical, "mutations[0].payload", index: 0),
    Case(#""aGVsbG8=""#, #""aGVsbG8=====""#, .notCanonical, "mutations[0].payload", index: 0),
    Case(#""aGVsbG8=""#, #""aG-_bG8=""#, .notCanonical, "mutations[0].payload", index: 0),
    Case(#""aGVsbG8=""#, #""====""#, .notCanonical, "mutations[0].payload", index: 0),
    Case(#""aGVsbG8=""#, #""AB==""#, .notCanonical, "mutations[0].payload", index: 0),
    Case(#""aGVsbG8=""#, #"1"#, .illTyped, "mutations[0].payload", index: 0),
    Case(#""aGVsbG8=""#, #"nul"#, .malformed, "mutations[0].payload"),
    Case(#""mutations":["#, #""mutations":[7,"#, .illTyped, "mutations[0]", index: 0),
  ]

  @Test("is refused with the place and the reason", arguments: cases)
  func refused(_ change: Case) throws {
    let body = json(samples.push)
    let range = try #require(body.range(of: change.from))
    let error = try wireError(
      PushRequest.self, json: body.replacingCharacters(in: range, with: change.to))
    #expect(error.code == change.code)
    #expect(error.path == change.path)
    #expect(error.index == change.index)
    #expect(change.path.isEmpty || error.description.contains(change.path))
  }

  @Test("is refused if it is no object, or has something behind it")
  func wholeBody() throws {
    #expect(try wireError(PushRequest.self, json: "[]").code == .illTyped)
    #expect(try wireError(PushRequest.self, json: "").code == .truncated)
    #expect(try wireError(PushRequest.self, json: " \n").code == .truncated)
    #expect(try wireError(PushRequest.self, json: "<html>").code == .malformed)
    #expect(try wireError(PushRequest.self, json: "\u{feff}{}").code == .malformed)
    #expect(try wireError(PushRequest.self, json: json(samples.push) + "{}").code == .trailingBytes)
    #expect(try wireError(PushRequest.self, json: json(samples.push) + ",").code == .trailingBytes)
    #expect(try wireError(PushRequest.self, json: "{,}").code == .malformed)
    #expect(try wireError(ClientRegistration.self, json: #"{"name":"a",}"#).code == .malformed)
    #expect(try wireError(ClientRegistration.self, json: "{\"name\":\"a\nb\"}").code == .malformed)
    let invalid = Data(#"{"name":""#.utf8) + [0xff] + Data(#""}"#.utf8)
    #expect(try wireError(ClientRegistration.self, invalid, .json).code == .notUTF8)
  }

  @Test("is refused if it is nested deeper than anything needs")
  func depth() throws {
    let deep = String(repeating: "[", count: 15) + String(repeating: "]", count: 15)
    let deeper = "[\(deep)]"
    #expect(
      try ClientRegistration(decoding: Data(#"{"x":\#(deep),"name":"a"}"#.utf8), as: .json).name
        == "a")
    #expect(
      try wireError(ClientRegistration.self, json: #"{"x":\#(deeper),"name":"a"}"#).code
        == .tooDeep)
    let endless = String(repeating: "[", count: 1_000_000)
    #expect(try wireError(ClientRegistration.self, json: #"{"x":\#(endless)"#).code == .tooDeep)
  }

  @Test("is read if what is wrong is only unknown, absent by null, or spelled with escapes")
  func tolerated() throws {
    var body = json(samples.push)
    body = body.replacingOccurrences(
      of: #""cursor":23"#,
      with: #" "later" : {"a":[1.5e+3,-0,null,false,"\ud83d\ude00\/"]} ,"\u0063ursor" :\#t23 "#)
    body = body.replacingOccurrences(of: #""base":255"#, with: #""base":null,"payload":null"#)
    var expected = samples.push
    expected.mutations[3].base = nil
    #expect(try PushRequest(decoding: Data(body.utf8), as: .json) == expected)
    let name = #"{"name":"\u00e9\ud83d\ude00\b\f\n\r\t\"\\\/\u0000"}"#
    let read = try ClientRegistration(decoding: Data(name.utf8), as: .json)
    #expect(Array(read.name.utf8) == Array("é😀\u{8}\u{c}\n\r\t\"\\/\u{0}".utf8))
  }

  @Test("may have at most 256 members that the protocol does not know")
  func memberCount() throws {
    func body(_ count: Int) -> String {
      "{" + (0..<count).map { "\"x\($0)\":0," }.joined() + #""name":"a"}"#
    }
    #expect(
      try ClientRegistration(decoding: Data(body(256).utf8), as: .json).name == "a")
    #expect(try wireError(ClientRegistration.self, json: body(257)).code == .tooManyMembers)
  }

  @Test("has IDs and names within their limits", arguments: WireFormat.allCases)
  func lengths(_ format: WireFormat) throws {
    var page = samples.page
    page.records = [samples.record]
    page.records[0].id = RecordID(String(repeating: "é", count: 200))
    #expect(try ChangesPage(decoding: page.encoded(as: format), as: format) == page)
    page.records[0].id = RecordID(String(repeating: "é", count: 200) + "a")
    let error = try wireError(ChangesPage.self, page.encoded(as: format), format)
    #expect(error.code == .outOfRange)
    #expect(error.path == "records[0].id")
    #expect(error.index == nil)

    let name = ClientRegistration(name: String(repeating: "x", count: 257))
    #expect(
      try wireError(ClientRegistration.self, name.encoded(as: format), format).code == .outOfRange)

    var answer = json(samples.clientAnswer)
    answer = answer.replacingOccurrences(of: "anna/é", with: String(repeating: "a", count: 257))
    #expect(try wireError(ClientAnswer.self, json: answer).path == "account")
  }

  @Test("does not stop at 0 where a hub must accept something")
  func limitsOfZero() throws {
    for member in ["pullRecords", "pullBytes", "pushMutations", "pushBytes"] {
      var session = samples.session
      switch member {
      case "pullRecords": session.limits.pullRecords = 0
      case "pullBytes": session.limits.pullBytes = 0
      case "pushMutations": session.limits.pushMutations = 0
      default: session.limits.pushBytes = 0
      }
      let error = try wireError(SessionAnswer.self, json: json(session))
      #expect(error.code == .outOfRange)
      #expect(error.path == "limits.\(member)")
    }
  }
}

import Foundation
import HubProtocol
import ProfileSync
import SyncTestSupport
import Testing

/// The answers of the protocol's last table, for every call.
@Suite("An answer")
struct AnswerJudgeTests {
  typealias Call = ProfileSync.Expectation.Call
  private static let hub = UUID()
  private static let other = UUID()

  /// What the header that names the hub, or the account, has.
  enum Named: CaseIterable, Sendable {
    case right
    case missing
    case wrong
    case malformed
    case twice
  }

  private static func fields(_ name: String, _ named: Named, _ right: String, _ wrong: String)
    -> [HeaderField]
  {
    switch named {
    case .right: [HeaderField(name, right)]
    case .missing: []
    case .wrong: [HeaderField(name, wrong)]
    case .malformed: [HeaderField(name, "%zz")]
    case .twice: [HeaderField(name, right), HeaderField(name, right)]
    }
  }

  private static func response(
    _ status: Int, code: String? = nil, hub hubNamed: Named = .right,
    account accountNamed: Named = .right, retryAfter: String? = nil, contentType: String? = nil,
    body: Data = Data()
  ) -> HubResponse {
    var headers =
      fields(HubHeader.hub, hubNamed, hub.wireText, other.wireText)
      + fields(HubHeader.account, accountNamed, "al%2Fice", "bob")
    var body = body
    if let code {
      headers.append(HeaderField("content-type", "Application/Problem+JSON; charset=utf-8"))
      body =
        HubProblem(title: "a problem", status: status, detail: "of a test", code: code).encoded()
    } else if let contentType {
      headers.append(HeaderField(HubHeader.contentType, contentType))
    }
    if let retryAfter { headers.append(HeaderField(HubHeader.retryAfter, retryAfter)) }
    return HubResponse(status: status, headers: headers, body: body)
  }

  private static func action(
    _ response: HubResponse, _ call: Call, knowsNobody: Bool = false
  ) throws -> AnswerAction {
    AnswerJudge.action(
      for: response,
      expecting: ProfileSync.Expectation(
        hub: knowsNobody ? nil : hub, account: knowsNobody ? nil : try AccountID("al/ice"),
        call: call))
  }

  /// The protocol's words: each code with its status, and what it leads to at each call.
  private static func row(_ code: HubCode) -> (status: Int, action: (Call) -> AnswerAction)? {
    switch code {
    case .accountMissing, .badCursor: (400, { _ in .stop(code) })
    case .badRequest: (400, { $0 == .push ? .bisect(namesMutation: false) : .stop(code) })
    case .badMutation: (400, { $0 == .push ? .bisect(namesMutation: true) : .stop(code) })
    case .tokenInvalid, .tokenExpired: (401, { _ in .refreshToken })
    case .accountMismatch: (403, { _ in .stopForSecurity })
    case .accountDisabled, .clientBoundElsewhere: (403, { _ in .stop(code) })
    case .notFound: (404, { _ in .stop(code) })
    case .clientUnknown: (404, { $0 == .push ? .registerClient : .stop(code) })
    case .methodNotAllowed: (405, { _ in .stop(code) })
    case .epochChanged: (409, { _ in .epochChanged })
    case .accountErased: (410, { _ in .freeze })
    case .cursorExpired: (410, { _ in .scanFromZero })
    case .tooLarge: (413, { $0 == .push ? .halve(isFromHub: true) : .stop(code) })
    case .uriTooLong: (414, { _ in .stop(code) })
    case .unsupportedMediaType: (415, { _ in .stop(code) })
    case .rateLimited: (429, { _ in .backOff(retryAfter: nil) })
    case .headersTooLarge: (431, { _ in .stop(code) })
    case .internal:
      (500, { $0 == .push ? .failed(retryAfter: nil) : .backOff(retryAfter: nil) })
    case .unavailable: (503, { _ in .backOff(retryAfter: nil) })
    // Verdicts on single mutations.
    case .blockedBy, .busy, .mutationReused, .badBase: nil
    }
  }

  @Test(
    "with a code of the protocol leads to the table's action, at every call",
    arguments: HubCode.allCases, Call.allCases)
  func codes(code: HubCode, call: Call) throws {
    guard let row = Self.row(code) else {
      for status in [400, 409, 500] {
        let action = try Self.action(Self.response(status, code: code.rawValue), call)
        #expect(action == Self.trouble(status, call))
      }
      return
    }
    let answer = Self.response(row.status, code: code.rawValue)
    #expect(try Self.action(answer, call) == row.action(call))
    // Before an area has an owner, any account that is named counts.
    #expect(try Self.action(answer, call, knowsNobody: true) == row.action(call))
  }

  private static func trouble(_ status: Int, _ call: Call) -> AnswerAction {
    switch status {
    case 413 where call == .push: .halve(isFromHub: false)
    case 429, 500...: .backOff(retryAfter: nil)
    default: .networkTrouble(retryAfter: nil)
    }
  }

  @Test(
    "that names another hub or account is a security event, whatever else it says",
    arguments: HubCode.allCases, Named.allCases)
  func security(code: HubCode, named: Named) throws {
    guard [.wrong, .malformed, .twice].contains(named) else { return }
    for call in Call.allCases {
      for status in [200, 201, Self.row(code)?.status ?? 500] {
        let code = status < 300 ? nil : code.rawValue
        #expect(
          try Self.action(Self.response(status, code: code, hub: named), call) == .stopForSecurity)
        #expect(
          try Self.action(Self.response(status, code: code, account: named), call)
            == .stopForSecurity)
      }
    }
  }

  @Test("account_mismatch from the bound hub is a security event, whatever account it names")
  func mismatch() throws {
    for account in Named.allCases {
      let answer = Self.response(403, code: "account_mismatch", account: account)
      #expect(try Self.action(answer, .pull) == .stopForSecurity)
    }
  }

  @Test(
    "without Holdfast-Hub is network trouble: a captive portal's 410 is nothing",
    arguments: HubCode.allCases, Call.allCases)
  func captivePortal(code: HubCode, call: Call) throws {
    let status = Self.row(code)?.status ?? 500
    for code in [code.rawValue, nil] {
      let answer = Self.response(status, code: code, hub: .missing, account: .missing)
      #expect(try Self.action(answer, call) == Self.trouble(status, call))
    }
  }

  @Test(
    "of HTML, a redirect or any status without a hub parks, freezes and advances nothing",
    arguments: [200, 204, 301, 302, 307, 400, 401, 403, 404, 409, 410, 413, 418, 500, 502, 504])
  func html(status: Int) throws {
    for call in Call.allCases {
      let answer = Self.response(
        status, hub: .missing, account: .missing, contentType: "text/html",
        body: Data("<html>Please log in</html>".utf8))
      #expect(try Self.action(answer, call) == Self.trouble(status, call))
    }
  }

  @Test(
    "of the hub without a known code is network trouble",
    arguments: ["", "brand_new_code", "CURSOR_EXPIRED"])
  func unknownCode(code: String) throws {
    for status in [400, 403, 404, 409, 410, 413, 429, 500, 503] {
      let answer = Self.response(status, code: code)
      #expect(try Self.action(answer, .push) == Self.trouble(status, .push))
    }
    // A problem that cannot be read, and one that is no problem by its type.
    let garbage = Self.response(
      410, contentType: HubProblem.contentType, body: Data("{\"code\":".utf8))
    #expect(try Self.action(garbage, .pull) == .networkTrouble(retryAfter: nil))
    let problem = HubProblem(title: "", status: 410, detail: "", code: "account_erased")
    let untyped = Self.response(410, contentType: "application/json", body: problem.encoded())
    #expect(try Self.action(untyped, .pull) == .networkTrouble(retryAfter: nil))
  }

  private static let statuses = [
    200, 201, 204, 301, 302, 307, 400, 401, 403, 404, 405, 409, 410, 413, 414, 415, 418, 429, 431,
    500, 502, 503, 504, 520, 598,
  ]

  @Test(
    "whose code comes with another status than its own is network trouble: every code, call, status",
    arguments: HubCode.allCases, Call.allCases)
  func product(code: HubCode, call: Call) throws {
    for status in Self.statuses {
      let expected: AnswerAction =
        switch status {
        case 200..<300: .use
        // From the bound hub, whatever the status.
        case _ where code == .accountMismatch: .stopForSecurity
        case Self.row(code)?.status: Self.row(code)?.action(call) ?? .use
        default: Self.trouble(status, call)
        }
      let answer = Self.response(status, code: code.rawValue)
      #expect(try Self.action(answer, call) == expected, "status \(status)")
    }
  }

  @Test(
    "that parks, freezes, replays or advances needs Holdfast-Account equal to the owner",
    arguments: [
      HubCode.accountErased, .cursorExpired, .epochChanged, .clientUnknown, .badMutation,
      .tooLarge, .internal,
    ])
  func ownersName(code: HubCode) throws {
    let status = try #require(Self.row(code)).status
    let answer = Self.response(status, code: code.rawValue, account: .missing)
    let expected: AnswerAction =
      switch code {
      case .clientUnknown: .stop(.clientUnknown)
      case .badMutation: .bisect(namesMutation: false)
      case .tooLarge: .halve(isFromHub: false)
      case .internal: .backOff(retryAfter: nil)
      default: .networkTrouble(retryAfter: nil)
      }
    #expect(try Self.action(answer, .push) == expected)
    #expect(
      try Self.action(Self.response(200, account: .missing), .pull)
        == .networkTrouble(retryAfter: nil))
  }

  @Test("of 2xx with the right hub and account is for use", arguments: Call.allCases)
  func use(call: Call) throws {
    #expect(try Self.action(Self.response(200), call) == .use)
    #expect(try Self.action(Self.response(201), call) == .use)
    #expect(try Self.action(Self.response(200), call, knowsNobody: true) == .use)
    // A hub that nobody has asked before must still name itself and the account.
    let nameless = Self.response(200, account: .missing)
    #expect(
      try Self.action(nameless, call, knowsNobody: true) == .networkTrouble(retryAfter: nil))
  }

  @Test("names its account byte for byte: no case folding, no normalization")
  func bytes() throws {
    for other in ["AL%2FICE", "al%2fice%20", "al%2Fic%C3%A9", "al%2Fice%00"] {
      var answer = Self.response(200, account: .missing)
      answer.headers.append(HeaderField(HubHeader.account, other))
      #expect(try Self.action(answer, .pull) == .stopForSecurity)
    }
    var answer = Self.response(200, account: .missing)
    answer.headers.append(HeaderField("HOLDFAST-ACCOUNT", "%61l%2fice"))
    #expect(try Self.action(answer, .pull) == .use)
  }

  @Test(
    "is waited for as Retry-After says, up to 5 minutes",
    arguments: [
      ("0", 0), ("1", 1), ("299", 299), ("300", 300), ("301", 300), ("4294967296", 300),
      ("99999999999999999999999", 300), ("-1", nil), ("+5", nil), ("1.5", nil), ("", nil),
      ("soon", nil), ("Wed, 21 Oct 2026 07:28:00 GMT", nil),
    ] as [(String, Int64?)])
  func retryAfter(text: String, seconds: Int64?) throws {
    let expected = seconds.map { Duration.seconds($0) }
    let busy = Self.response(429, code: "rate_limited", retryAfter: text)
    #expect(try Self.action(busy, .push) == .backOff(retryAfter: expected))
    let down = Self.response(503, hub: .missing, account: .missing, retryAfter: text)
    #expect(try Self.action(down, .push) == .backOff(retryAfter: expected))
    let portal = Self.response(404, hub: .missing, account: .missing, retryAfter: text)
    #expect(try Self.action(portal, .push) == .networkTrouble(retryAfter: expected))
  }
}

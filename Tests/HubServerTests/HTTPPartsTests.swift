import Foundation
import HubProtocol
import HubRules
import HubServer
import Testing

@Suite("The form of a head")
struct HTTPFormTests {
  private static func head(_ change: (inout RequestHead) -> Void) -> RequestHead {
    var head = RequestHead(
      method: "GET", target: Array("/v1/changes".utf8), fields: [.init("Host", Array("h".utf8))])
    change(&head)
    return head
  }

  private static func add(_ name: String, _ value: String, to head: inout RequestHead) {
    head.fields.append(.init(name, Array(value.utf8)))
  }

  @Test("that is right passes, with headers that the hub does not know twice")
  func right() {
    let head = Self.head { head in
      Self.add("X-Other", "1", to: &head)
      Self.add("X-Other", "2", to: &head)
      Self.add("transfer-encoding", "Chunked", to: &head)
    }
    #expect(HTTPForm.refusal(of: head) == nil)
  }

  @Test("that two servers could read differently is refused")
  func wrong() {
    let wrong: [RequestHead] = [
      Self.head { $0.isWellFormed = false },
      Self.head { $0.fields = [] },
      Self.head { $0.version = "HTTP/2.0" },
      Self.head { $0.target = Array("/a b".utf8) },
      Self.head { $0.target = Array("/ä".utf8) },
      Self.head { Self.add("Host", "h", to: &$0) },
      Self.head { Self.add("X Y", "1", to: &$0) },
      Self.head { Self.add("X\t", "1", to: &$0) },
      Self.head { Self.add("X", "1\r2", to: &$0) },
      Self.head {
        Self.add("Content-Length", "1", to: &$0)
        Self.add("Content-Length", "1", to: &$0)
      },
      Self.head {
        Self.add("Content-Length", "1", to: &$0)
        Self.add("Transfer-Encoding", "chunked", to: &$0)
      },
      Self.head { Self.add("Transfer-Encoding", "gzip, chunked", to: &$0) },
      Self.head {
        $0.version = "HTTP/1.0"
        Self.add("Transfer-Encoding", "chunked", to: &$0)
      },
    ]
    for head in wrong { #expect(HTTPForm.refusal(of: head)?.code == .badRequest) }
    for name in ["Authorization", "holdfast-account", "ACCEPT", "Content-Type"] {
      let head = Self.head {
        Self.add(name, "a", to: &$0)
        Self.add(name, "a", to: &$0)
      }
      #expect(HTTPForm.refusal(of: head)?.code == .badRequest)
    }
  }

  @Test("is bounded: a target of 16 KiB and a head of 64 KiB pass, longer ones do not")
  func bounds() {
    func target(_ count: Int) -> RequestHead {
      Self.head { $0.target = [UInt8](repeating: UInt8(ascii: "a"), count: count) }
    }
    #expect(HTTPForm.refusal(of: target(16_384)) == nil)
    #expect(HTTPForm.refusal(of: target(16_385))?.code == .uriTooLong)
    #expect(HTTPForm.refusal(of: Self.head { $0.byteCount = 65_536 }) == nil)
    #expect(
      HTTPForm.refusal(of: Self.head { $0.byteCount = 65_537 })?.code == .headersTooLarge)
  }
}

@Suite("The parameters of a query")
struct QueryParametersTests {
  private func read(_ text: String) throws(Refusal) -> QueryParameters {
    try QueryParameters(Array(text.utf8)[...], known: ["a", "b"])
  }

  @Test("are percent-decoded and nothing else")
  func decoded() throws {
    #expect(try read("a=x%2Fy+z%00&b=%C3%A9").bytes("a") == Array("x/y+z\u{0}".utf8))
    #expect(try read("%61=1").bytes("a") == Array("1".utf8))
    #expect(try read("a=1=2").bytes("a") == Array("1=2".utf8))
    #expect(try read("a").bytes("a") == [])
    #expect(try read("").bytes("a") == nil)
    #expect(try read("c=1&c=2").bytes("c") == nil)
  }

  @Test(
    "with a bad escape, bytes that are no UTF-8, or twice are refused",
    arguments: ["a=%", "a=%4", "a=%zz", "a=%FF", "x=%C3", "%=1", "a=1&a=1", "a=1&%61=1"])
  func refused(text: String) {
    let error = #expect(throws: Refusal.self) { try read(text) }
    #expect(error?.code == .badRequest)
  }

  @Test(
    "have sequences in one spelling",
    arguments: [
      ("0", 0), ("7", 7), ("9007199254740991", 9_007_199_254_740_991), ("9007199254740992", nil),
      ("-1", nil), ("+1", nil), ("01", nil), ("1.0", nil), ("1e2", nil), ("", nil), (" 1", nil),
      ("99999999999999999999", nil), ("٣", nil),
    ] as [(String, UInt64?)])
  func sequences(text: String, value: UInt64?) throws {
    let escaped = PercentEncoding.encode(bytes: text.utf8)
    let query = try read("a=\(escaped)")
    if let value {
      #expect(try query.sequence("a", .badCursor) == value)
    } else {
      let error = #expect(throws: Refusal.self) { try query.sequence("a", .badCursor) }
      #expect(error?.code == .badCursor)
    }
  }

  @Test("have UUIDs in lower case only")
  func uuids() throws {
    let uuid = UUID()
    #expect(try read("a=\(uuid.wireText)").uuid("a") == uuid)
    for text in ["a=\(uuid.uuidString)", "a={\(uuid.wireText)}", "a=", "b=1"]
    where text != "a=\(uuid.wireText)" {
      #expect(throws: Refusal.self) { try read(text).uuid("a") }
    }
  }
}

@Suite("The time for a transfer")
struct TransferTimeTests {
  @Test(
    "is a second longer for each 4,096 bytes",
    arguments: [(0, 120), (4_095, 120), (4_096, 121), (8 << 20, 2_168)])
  func grows(byteCount: Int, seconds: Int) {
    #expect(TransferTime.seconds(base: 120, byteCount: byteCount) == seconds)
  }
}

@Suite("The form that Accept prefers")
struct AnswerFormatTests {
  @Test(
    "is JSON unless CBOR is wanted more",
    arguments: [
      (nil, WireFormat.json), ("", .json), ("*/*", .json), ("application/*", .json),
      ("text/html", .json), ("application/json", .json), ("application/cbor", .cbor),
      ("Application/CBOR", .cbor), ("application/cbor;q=0", .json),
      ("application/cbor, application/json", .cbor),
      ("application/json, application/cbor", .json),
      ("application/json;q=0.5, application/cbor;q=0.6", .cbor),
      ("application/cbor;q=0.5, application/json", .json),
      ("application/cbor, */*", .cbor), ("application/cbor;q=0.5, */*", .json),
      ("application/cbor;q=high", .json),
    ] as [(String?, WireFormat)])
  func preferred(accept: String?, format: WireFormat) {
    #expect(WireFormat.preferred(accept: accept) == format)
  }
}

@Suite("A path")
struct EndpointTests {
  @Test(
    "is compared as it is written",
    arguments: [
      "/v1/sessions", "/v1/session/", "/V1/session", "/v1/%73ession", "//v1/session", "/", "",
      "*", "/v1/clients", "/v1/clients/", "/v1/clients/a/b", "http://hub/v1/session",
      "/v1/../v1/session", "/v1/openapi.json",
    ])
  func unknown(path: String) {
    #expect(Endpoint(path: path) == nil)
  }

  @Test("of a client is any one segment")
  func client() {
    #expect(Endpoint(path: "/v1/clients/x%2Fy") == .client("x%2Fy"))
  }
}

import HubProtocol
import Testing

@Suite("Percent-encoding")
struct PercentEncodingTests {
  @Test("gives back every byte")
  func everyByte() {
    let bytes = Array(UInt8.min...UInt8.max)
    let text = PercentEncoding.encode(bytes: bytes)
    #expect(PercentEncoding.decode(text) == bytes)
    #expect(text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f })
  }

  @Test("leaves unreserved characters alone, and nothing else")
  func unreserved() {
    let unreserved = "ABCXYZabcxyz0189-._~"
    #expect(PercentEncoding.encode(bytes: unreserved.utf8) == unreserved)
    #expect(PercentEncoding.encode(bytes: "a b+c/d?é".utf8) == "a%20b%2Bc%2Fd%3F%C3%A9")
    #expect(PercentEncoding.encode(bytes: "e&f=g%".utf8) == "e%26f%3Dg%25")
  }

  @Test(
    "reads either case, and a plus as a plus",
    arguments: [
      ("", ""), ("a+b", "a+b"), ("%2b%2B", "++"), ("%41%7a", "Az"), ("/é", "/é"),
      ("100%25", "100%"),
    ])
  func decoded(_ text: String, _ expected: String) {
    #expect(PercentEncoding.decode(text) == Array(expected.utf8))
  }

  @Test("refuses a bad escape", arguments: ["%", "a%", "%4", "%4g", "%g4", "%%41", "% 41", "%+1"])
  func refused(_ text: String) {
    #expect(PercentEncoding.decode(text) == nil)
  }

  @Test("gives bytes that need not be UTF-8")
  func notUTF8() {
    #expect(PercentEncoding.decode("%FF%00") == [0xff, 0])
  }
}

@Suite("A content type")
struct ContentTypeTests {
  @Test(
    "is known by its type, whatever its case and parameters",
    arguments: [
      ("application/json", WireFormat.json), ("application/cbor", .cbor),
      ("Application/JSON; charset=utf-8", .json), (" application/cbor ;x=y", .cbor),
      ("text/html", nil), ("application/json-patch", nil), ("", nil), ("application/ json", nil),
      ("application/problem+json", nil),
    ] as [(String, WireFormat?)])
  func formats(_ text: String, _ format: WireFormat?) {
    #expect(WireFormat(contentType: text) == format)
  }
}

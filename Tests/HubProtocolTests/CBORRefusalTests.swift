import Foundation
import HubProtocol
import Testing

@Suite("A CBOR body with something wrong in it")
struct CBORRefusalTests {
  @Test(
    "is refused with the reason",
    arguments: [
      // name: integer, bytes, list, null, undefined, float, tag around a text.
      ("a1 646e616d65 00", WireError.Code.illTyped, "name"),
      ("a1 646e616d65 4161", .illTyped, "name"),
      ("a1 646e616d65 80", .illTyped, "name"),
      ("a1 646e616d65 f6", .illTyped, "name"),
      ("a1 646e616d65 f7", .illTyped, "name"),
      ("a1 646e616d65 f93c00", .illTyped, "name"),
      ("a1 646e616d65 c06161", .illTyped, "name"),
      // Lengths that are open: text, map, list, byte string.
      ("a1 646e616d65 7f6161ff", .notCanonical, "name"),
      ("bf 646e616d65 6161 ff", .notCanonical, ""),
      ("a2 6178 9f01ff 646e616d65 6161", .notCanonical, ""),
      ("a2 6178 5f4101ff 646e616d65 6161", .notCanonical, ""),
      // Lengths and integers longer than needed.
      ("a1 646e616d65 780161", .notCanonical, "name"),
      ("b801 646e616d65 6161", .notCanonical, ""),
      ("a2 6178 1817 646e616d65 6161", .notCanonical, ""),
      ("a2 6178 190018 646e616d65 6161", .notCanonical, ""),
      ("a2 6178 1a0000ffff 646e616d65 6161", .notCanonical, ""),
      ("a2 6178 1b00000000ffffffff 646e616d65 6161", .notCanonical, ""),
      ("a2 6178 3800 646e616d65 6161", .notCanonical, ""),
      // Lengths that lie, up to 2^64 - 1, of text, bytes, list, map.
      ("a1 646e616d65 6261", .truncated, "name"),
      ("a1 646e616d65 7bffffffffffffffff61", .truncated, "name"),
      ("a2 6178 5bffffffffffffffff 646e616d65 6161", .truncated, ""),
      ("a2 6178 9b7fffffffffffffff 646e616d65 6161", .truncated, ""),
      ("a2 6178 9a00ffffff 646e616d65 6161", .truncated, ""),
      ("a2 6178 bbffffffffffffffff 646e616d65 6161", .truncated, ""),
      ("bbffffffffffffffff 646e616d65 6161", .truncated, ""),
      ("b0 646e616d65 6161", .truncated, ""),
      // The same member twice: known, unknown, and within what is passed over.
      ("a2 646e616d65 6161 646e616d65 6161", .duplicateMember, "name"),
      ("a3 6178 01 6178 02 646e616d65 6161", .duplicateMember, ""),
      ("a2 6178 a20101 0102 646e616d65 6161", .duplicateMember, ""),
      // No text as a name; no UTF-8 in a text, a name, or what is passed over.
      ("a2 01 01 646e616d65 6161", .illTyped, ""),
      ("a1 646e616d65 62fffe", .notUTF8, "name"),
      ("a1 646e616d65 62c080", .notUTF8, "name"),
      ("a1 646e616d65 63eda080", .notUTF8, "name"),
      ("a2 61ff 01 646e616d65 6161", .notUTF8, ""),
      ("a2 6178 61ff 646e616d65 6161", .notUTF8, ""),
      // Reserved heads, a break without a beginning, a simple value in two bytes.
      ("a1 646e616d65 7c61", .malformed, "name"),
      ("a1 646e616d65 7d61", .malformed, "name"),
      ("a1 646e616d65 7e61", .malformed, "name"),
      ("a1 646e616d65 ff", .malformed, "name"),
      ("a2 6178 f800 646e616d65 6161", .malformed, ""),
      ("a2 6178 1f 646e616d65 6161", .malformed, ""),
      ("a2 6178 df 646e616d65 6161", .malformed, ""),
      // Something behind it; nothing at all; no object.
      ("a1 646e616d65 6161 00", .trailingBytes, ""),
      ("", .truncated, ""),
      ("80", .illTyped, ""),
      ("a0", .missing, "name"),
    ])
  func refused(_ body: String, _ code: WireError.Code, _ path: String) throws {
    let error = try wireError(ClientRegistration.self, try hex(body), .cbor)
    #expect(error.code == code)
    #expect(error.path == path)
  }

  @Test("is read if there is only more in it than is known")
  func tolerated() throws {
    // Integers, a negative one, bytes, lists, a map with other keys, a tag, floats, simple values.
    let unknown = [
      "1bffffffffffffffff", "20", "3bffffffffffffffff", "4100", "820102", "a2010261780f",
      "c11a00010000", "f93c00", "fa3f800000", "fb3ff0000000000000", "f4", "f6", "f7", "f820", "f0",
    ]
    var body = "b0"
    for (position, value) in unknown.enumerated() {
      body += "61" + String(0x61 + position, radix: 16) + value
    }
    let read = try ClientRegistration(
      decoding: try hex(body + "646e616d65" + "626f6b"), as: .cbor)
    #expect(read.name == "ok")
  }

  @Test(
    "has no sequence that is negative, a float, a text, or above 2^53 - 1",
    arguments: [
      ("1b001fffffffffffff", nil), ("1b0020000000000000", WireError.Code.outOfRange),
      ("1bffffffffffffffff", .outOfRange), ("20", .outOfRange), ("f93c00", .illTyped),
      ("6131", .illTyped), ("c101", .illTyped), ("1801", .notCanonical),
    ] as [(String, WireError.Code?)])
  func sequences(_ value: String, _ code: WireError.Code?) throws {
    let samples = try Samples()
    var push = samples.push
    push.mutations = []
    let body = push.encoded(as: .cbor).hexText
    let changed = try hex(
      body.replacingOccurrences(of: "66637572736f7217", with: "66637572736f72" + value))
    if let code {
      let error = try wireError(PushRequest.self, changed, .cbor)
      #expect(error.code == code)
      #expect(error.path == "cursor")
    } else {
      #expect(try PushRequest(decoding: changed, as: .cbor).cursor == WireLimits.sequenceMax)
    }
  }

  @Test("is refused if it is nested deeper than anything needs")
  func depth() throws {
    func body(_ depth: Int) throws -> Data {
      let lists = String(repeating: "81", count: depth - 1) + "80"
      return try hex("a2 6178" + lists + "646e616d65 6161")
    }
    #expect(try ClientRegistration(decoding: try body(15), as: .cbor).name == "a")
    #expect(try wireError(ClientRegistration.self, try body(16), .cbor).code == .tooDeep)
    let tags = try hex("a2 6178" + String(repeating: "c1", count: 100_000))
    #expect(try wireError(ClientRegistration.self, tags, .cbor).code == .tooDeep)
    let maps = try hex("a2 6178" + String(repeating: "a1", count: 100_000))
    #expect(try wireError(ClientRegistration.self, maps, .cbor).code == .tooDeep)
  }

  @Test("may have at most 256 members that the protocol does not know")
  func memberCount() throws {
    func body(_ count: Int) throws -> Data {
      let names = (0..<count).map { position in
        "64" + Data("x\(position + 100)".utf8).hexText + "00"
      }
      let header = "b9" + String(0x1_0000 + count + 1, radix: 16).dropFirst()
      return try hex(header + names.joined() + "646e616d65 6161")
    }
    #expect(try ClientRegistration(decoding: try body(256), as: .cbor).name == "a")
    #expect(try wireError(ClientRegistration.self, try body(257), .cbor).code == .tooManyMembers)
  }

  @Test("names the mutation that is to blame, and none where the body is cut off")
  func index() throws {
    let samples = try Samples()
    var push = samples.push
    push.mutations[2].id = RecordID(String(repeating: "x", count: 401))
    let body = push.encoded(as: .cbor)
    let error = try wireError(PushRequest.self, body, .cbor)
    #expect(error.index == 2)
    #expect(error.path == "mutations[2].id")
    let cut = try wireError(PushRequest.self, samples.push.encoded(as: .cbor).dropLast(3), .cbor)
    #expect(cut.code == .truncated)
    #expect(cut.index == nil)
    #expect(cut.path.hasPrefix("mutations[3]"))
  }
}

import Foundation
import HubClient
import Testing

@Suite("A stream of events")
struct EventStreamParserTests {
  private static func event(_ name: String, _ data: String) -> ServerSentEvent {
    ServerSentEvent(name: name, data: Data(data.utf8))
  }

  @Test(
    "is taken apart, whatever its line ends, and however it is cut",
    arguments: [
      ("event: a\ndata: 1\n\n", [event("a", "1")]),
      ("event: a\r\ndata: 1\r\n\r\n", [event("a", "1")]),
      ("event: a\rdata: 1\r\r", [event("a", "1")]),
      ("event: a\rdata: 1\n\r\n", [event("a", "1")]),
      ("data: 1\n\ndata: 2\n\n", [event("message", "1"), event("message", "2")]),
      // One blank behind the colon is not part of the value, and no colon means no value.
      ("event:a\ndata:  x \n\n", [event("a", " x ")]),
      ("data\n\n", [event("message", "")]),
      ("data: 1\ndata: 2\ndata\n\n", [event("message", "1\n2\n")]),
      // The last name counts, and holds for one event.
      ("event: a\nevent: b\ndata: 1\n\ndata: 2\n\n", [event("b", "1"), event("message", "2")]),
      // Comments, fields of no use and unknown ones.
      (": hello\n:\nid: 7\nretry: 9\nother: x\ndata: 1\n:\n\n", [event("message", "1")]),
      (":\n\n:\n\n", []),
      // Without data there is no event, and its name is gone.
      ("event: a\n\ndata: 1\n\n", [event("message", "1")]),
      // What has not ended is not there.
      ("data: 1\n\ndata: 2\n", [event("message", "1")]), ("data: 1", []), ("", []),
      // A byte order mark at the very start, and nowhere else.
      ("\u{FEFF}data: 1\n\n", [event("message", "1")]),
      ("data: 1\n\n\u{FEFF}data: 2\n\n", [event("message", "1")]),
      ("\u{FEFF}\n\ndata: ä\u{0301}\n\n", [event("message", "ä\u{0301}")]),
      ("Data: 1\n data: 2\ndata : 3\n\n", []),
    ] as [(String, [ServerSentEvent])])
  func table(text: String, events: [ServerSentEvent]) {
    for pieceByteCount in [1, 2, 3, 1_000] {
      var parser = EventStreamParser()
      var found: [ServerSentEvent] = []
      var rest = Array(text.utf8)[...]
      while !rest.isEmpty {
        found += parser.take(rest.prefix(pieceByteCount))
        rest = rest.dropFirst(pieceByteCount)
      }
      #expect(found == events, "in pieces of \(pieceByteCount)")
      #expect(!parser.isTooLarge)
    }
  }

  @Test("may have bytes that are no UTF-8: what is in the data is for others to judge")
  func bytes() {
    var parser = EventStreamParser()
    let events = parser.take(Array("data: ".utf8) + [0xFF, 0x00] + Array("\n\n".utf8))
    #expect(events == [ServerSentEvent(name: "message", data: Data([0xFF, 0x00]))])
  }

  @Test("has no line and no event above a limit, and goes on for ever below it")
  func limit() {
    let max = EventStreamParser.eventByteCountMax
    func isTooLarge(_ text: String) -> Bool {
      var parser = EventStreamParser()
      _ = parser.take(text.utf8)
      return parser.isTooLarge
    }
    let x = String(repeating: "x", count: max)
    #expect(!isTooLarge("data:\(x.dropLast(5))\n\n"))
    #expect(isTooLarge("data:\(x.dropLast(4))\n\n"))
    #expect(isTooLarge(x + "x"))
    #expect(isTooLarge(":" + x))
    #expect(isTooLarge(String(repeating: "data: 12345\n", count: max / 10)))
    #expect(!isTooLarge(String(repeating: "data: 12345\n\n", count: max)))
    #expect(!isTooLarge(String(repeating: ": a comment\n", count: max)))
    #expect(!isTooLarge(String(repeating: "id: 12345\n", count: max)))
    // Nothing is taken after it.
    var parser = EventStreamParser()
    #expect(parser.take("\(x)x\n\ndata: 1\n\n".utf8).isEmpty)
    #expect(parser.take("data: 1\n\n".utf8).isEmpty)
  }
}

import Foundation
import HubProtocol
import HubRules
import HubServer
import Synchronization
import Testing

@Suite("What an event stream says")
struct EventFeedTests {
  /// Everything that is there, in pieces of a size; `parks` counts how often there was nothing.
  private func taken(
    _ feed: EventFeed, pieceByteCount: Int = 1_024, resume: @escaping @Sendable () -> Void = {}
  ) -> (text: String, end: EventFeed.Taken) {
    var bytes = Data()
    var buffer = [UInt8](repeating: 0, count: pieceByteCount)
    while true {
      let taken = buffer.withUnsafeMutableBytes { feed.take($0) { resume } }
      guard case .bytes(let count) = taken else {
        return (String(decoding: bytes, as: UTF8.self), taken)
      }
      bytes.append(contentsOf: buffer[..<count])
    }
  }

  @Test("is events in their form, in pieces of any size", arguments: [1, 7, 4_096])
  func form(pieceByteCount: Int) throws {
    let feed = EventFeed()
    let greeting = HubGreeting(
      hub: UUID(), epoch: UUID(), account: try AccountID("a\n\"b"), highWater: 3)
    feed.add(.hello(greeting))
    feed.add(.change(highWater: 4))
    feed.end(.bye(code: "shutting_down"))
    let (text, end) = taken(feed, pieceByteCount: pieceByteCount)
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    try #require(lines.count == 10, "no event has a line break in its data")
    #expect(lines[0] == "event: hello" && lines[1].hasPrefix("data: {") && lines[2].isEmpty)
    let read = try HubEvent(name: "hello", data: Data(lines[1].utf8.dropFirst(6)))
    #expect(read == .hello(greeting))
    #expect(
      lines[3...].joined(separator: "\n") == """
        event: change
        data: {"highWater":4}

        event: bye
        data: {"code":"shutting_down"}


        """)
    #expect(end == .end)
    feed.add(.change(highWater: 9))
    #expect(taken(feed).text.isEmpty)
  }

  @Test("is the last of several changes, and a comment only where there is nothing else")
  func coalesced() {
    let feed = EventFeed()
    for highWater in 1...5 as ClosedRange<UInt64> { feed.add(.change(highWater: highWater)) }
    feed.addComment()
    #expect(taken(feed).text == "event: change\ndata: {\"highWater\":5}\n\n")
    feed.addComment()
    feed.addComment()
    #expect(taken(feed).text == ":\n\n")
    // A change that was told before the end stays before it.
    feed.add(.change(highWater: 6))
    feed.end(.bye(code: "x"))
    #expect(
      taken(feed).text == """
        event: change
        data: {"highWater":6}

        event: bye
        data: {"code":"x"}


        """)
  }

  @Test("takes the connection up again once, when there is something to send")
  func resumed() {
    let feed = EventFeed()
    let count = Mutex(0)
    let resume: @Sendable () -> Void = { count.withLock { $0 += 1 } }
    #expect(taken(feed, resume: resume).end == .nothing)
    #expect(count.withLock { $0 } == 0)
    feed.add(.change(highWater: 1))
    feed.add(.change(highWater: 2))
    feed.addComment()
    #expect(count.withLock { $0 } == 1)
    #expect(taken(feed, resume: resume).end == .nothing)
    feed.end()
    feed.end(.bye(code: "x"))
    #expect(count.withLock { $0 } == 2)
    #expect(taken(feed).end == .end)
  }

  @Test("breaks off where it is cut", arguments: [0, 5, nil] as [Int?])
  func cut(byteCount: Int?) {
    let feed = EventFeed()
    feed.add(.bye(code: "x"))
    feed.cut(afterByteCount: byteCount)
    let whole = "event: bye\ndata: {\"code\":\"x\"}\n\n"
    let (text, end) = taken(feed)
    #expect(text == whole.prefix(byteCount ?? whole.utf8.count / 2))
    #expect(end == .cut)
  }

  @Test("follows from how the account stands")
  func rules() {
    let epoch = UUID()
    var state = AccountState(epoch: epoch)
    state.highWater = 3
    var rules = EventRules(epoch: epoch, highWater: 3)
    #expect(rules.look(at: state) == nil)
    state.highWater = 5
    #expect(rules.look(at: state) == .change(highWater: 5))
    #expect(rules.look(at: state) == nil)
    let ends: [((inout AccountState) -> Void, String)] = [
      ({ $0.status = .disabled }, "account_disabled"), ({ $0.erase() }, "account_erased"),
      ({ $0.beginEpoch(UUID(), forkedAt: 5) }, "epoch_changed"),
      ({ $0.recreate(UUID()) }, "epoch_changed"),
    ]
    for (change, code) in ends {
      var changed = state
      change(&changed)
      #expect(rules.look(at: changed) == .bye(code: code))
    }
  }
}

import Foundation
import HubProtocol
import Testing

@Suite("An event of a stream")
struct HubEventTests {
  private static let hub = "0b9c3e0a-4a86-4f6a-8f0e-2f7c5a1d9e10"
  private static let epoch = "5d1f6d7e-31a5-4f1a-9a59-0c2f6c3b7a44"

  @Test("is the same value again when it was written and read")
  func roundTrip() throws {
    let greeting = HubGreeting(
      hub: try #require(UUID(uuidString: Self.hub)),
      epoch: try #require(UUID(uuidString: Self.epoch)), account: try AccountID("ä\n\u{2028}"),
      highWater: WireLimits.sequenceMax)
    for event in [
      HubEvent.hello(greeting), .change(highWater: 0), .bye(code: "shutting_down"),
      .bye(code: "something_new"),
    ] {
      let data = event.encoded()
      #expect(!data.contains(UInt8(ascii: "\n")) && !data.contains(UInt8(ascii: "\r")))
      #expect(try HubEvent(name: event.name, data: data) == event)
    }
  }

  @Test("has the names and members of the protocol")
  func form() throws {
    let hello = """
      {"hub":"\(Self.hub)","epoch":"\(Self.epoch)","account":"alice","highWater":7,"more":[1]}
      """
    guard case .hello(let greeting) = try HubEvent(name: "hello", data: Data(hello.utf8)) else {
      Issue.record("no greeting")
      return
    }
    #expect(greeting.account.text == "alice" && greeting.highWater == 7)
    #expect(HubEvent.change(highWater: 8).encoded() == Data("{\"highWater\":8}".utf8))
    #expect(HubEvent.bye(code: "x").encoded() == Data("{\"code\":\"x\"}".utf8))
    #expect(
      HubFarewell.allCases.map(\.rawValue) == [
        "token_expired", "account_erased", "account_disabled", "epoch_changed", "shutting_down",
      ])
  }

  @Test("of another name is passed over, and one that is malformed is an error")
  func refused() throws {
    #expect(try HubEvent(name: "message", data: Data("anything".utf8)) == nil)
    #expect(try HubEvent(name: "Hello", data: Data()) == nil)
    for (name, data) in [
      ("hello", "{}"), ("hello", "{\"hub\":1}"), ("change", "{\"highWater\":-1}"),
      ("change", "{\"highWater\":9007199254740992}"), ("change", "[]"), ("change", ""),
      ("bye", "{\"code\":null}"), ("bye", "{\"code\":\"x\"}{}"),
    ] {
      #expect(throws: WireError.self) { _ = try HubEvent(name: name, data: Data(data.utf8)) }
    }
  }
}

import Foundation
import HubProtocol
import ProfileStore
import Testing

@testable import profilectl

@Suite("The name of an account")
struct AccountNameTests {
  private func name(_ id: String, hub: UUID = TestStore.hub, revealed: Bool = false) throws
    -> String
  {
    let account = VerifiedAccount(hub: hub, id: try AccountID(id), proof: .area)
    return AccountName(account, isRevealed: revealed).text
  }

  @Test("shows at most four characters of an ID and at most a third of it")
  func shortened() throws {
    #expect(try name("alice@example.org") == "alic…#0950a337")
    #expect(try name("alice").hasPrefix("a…#"))
    #expect(try name("ab").hasPrefix("…#"))
  }

  @Test("tells accounts apart that look the same, and those of two hubs")
  func distinct() throws {
    let names = [
      try name("caf\u{E9}@example.org"), try name("cafe\u{301}@example.org"),
      try name("CAF\u{E9}@example.org"), try name("caf\u{E9}@example.org "),
      try name("caf\u{E9}@example.org", hub: TestStore.epoch),
    ]
    #expect(Set(names.map { $0.suffix(9) }).count == names.count)
    let composed = try name("caf\u{E9}", revealed: true)
    let decomposed = try name("cafe\u{301}", revealed: true)
    #expect(Array(composed.utf8) != Array(decomposed.utf8))
  }

  @Test("is whole when it is revealed, with its hash")
  func revealed() throws {
    #expect(try name("alice@example.org", revealed: true) == "alice@example.org #0950a337")
  }
}

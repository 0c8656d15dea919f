import Foundation
import HubProtocol
import ProfileStore
import Testing

@Suite("profilectl, asked for nothing more")
struct PrivacyTests {
  private static let commands = [["list"], ["show"], ["outbox"]]
    .flatMap { [$0, $0 + ["--json"]] }

  /// A store with canaries, and what a command says about it.
  private func output(_ words: [String]) async throws -> String {
    let store = try TestStore()
    let alice = try TestStore.account("canary-account@example.org")
    let profile = try await store.profile(of: alice)
    let parked = UUID()
    try await profile.enqueue(
      .put("record", Data("canary-payload".utf8), mutation: parked), account: alice)
    let current = HubVersion(
      version: 3, isDeleted: false, payload: Data("canary-current".utf8), isPayloadOmitted: false)
    try await store.settle(
      [(parked, .parked(Parked(reason: .conflict, current: current)))], of: profile)
    let words = words[0] == "list" ? words : [words[0], "\(profile.id)"] + words.dropFirst()
    let run = try await store.copied().run(words)
    #expect(run.exitCode == 0)
    return run.output + run.errors
  }

  @Test("never prints a payload", arguments: commands)
  func noPayload(words: [String]) async throws {
    let said = try await output(words)
    for payload in ["canary-payload", "canary-current"] {
      #expect(!said.contains(payload))
      #expect(!said.contains(Data(payload.utf8).base64EncodedString()))
    }
  }

  @Test("never prints a whole account ID", arguments: commands)
  func noAccount(words: [String]) async throws {
    #expect(try await !output(words).contains("canary-account"))
  }

  @Test("prints payloads with --payload, as text or base64")
  func payload() async throws {
    let text = try await output(["outbox", "--payload"])
    #expect(text.contains("    payload: canary-payload\n"))
    #expect(text.contains("    at the hub: canary-current\n"))
    let json = try await output(["outbox", "--payload", "--json"])
    #expect(json.contains(Data("canary-payload".utf8).base64EncodedString()))
    #expect(json.contains(Data("canary-current".utf8).base64EncodedString()))
  }

  @Test("prints account IDs with --reveal", arguments: commands)
  func reveal(words: [String]) async throws {
    let isNamed = try await output(words + ["--reveal"]).contains("canary-account@example.org")
    // The table of an outbox names no account.
    #expect(isNamed == (words != ["outbox"]))
  }
}

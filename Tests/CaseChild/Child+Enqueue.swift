import Foundation
import HubProtocol
import ProfileStore

extension Child {
  /// `enqueue COUNT PREFIX [end]`: one after the other, each said once it is stored; then ends by
  /// itself, or is killed.
  func enqueue() async throws {
    let (account, profile) = try await signIn()
    let prefix = word(1) ?? "r"
    for number in 1...(try number(0)) {
      try await profile.enqueue(
        .put(RecordID("\(prefix)\(number)"), Data("child \(number)".utf8)), account: account)
      say("stored \(number)")
    }
    if word(2) == "end" { endHere() }
  }
}

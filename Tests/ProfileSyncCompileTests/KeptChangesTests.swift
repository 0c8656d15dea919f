import CompilerSupport
import Testing

/// What an apply closure does with its batch, in two versions: lines marked `// wrong` stand in the
/// refused one only, those marked `// right` in the other only.
struct ApplyClosure: Sendable, CustomStringConvertible {
  let description: String
  /// Every error of the refused version says this.
  let error: String
  let body: String

  var right: String { source(without: "// wrong") }
  var wrong: String { source(without: "// right") }

  private func source(without mark: String) -> String {
    let lines = body.split(separator: "\n", omittingEmptySubsequences: false)
    return """
      import Foundation
      import HubProtocol
      import ProfileStore
      import ProfileSync

      private func use(_ value: Int) {}

      @MainActor private func pass(_ profile: Profile, _ account: VerifiedAccount) async throws {
      \(lines.filter { !$0.hasSuffix(mark) }.joined(separator: "\n"))
      }

      """
  }

  static let all = [
    ApplyClosure(
      description: "a batch, kept in a variable outside", error: "consum",
      body: """
          var kept: ChangeBatch?  // wrong
          var kept: BatchPosition?  // right
          try await profile.synchronize(account: account) { batch in
            kept = batch  // wrong
            kept = batch.position  // right
          }
          use(kept == nil ? 0 : 1)  // right
        """),
    ApplyClosure(
      description: "the changes of a batch, kept in a variable outside", error: "escape",
      body: """
          var kept: [Change] = []  // right
          var kept: LentChanges?  // wrong
          try await profile.synchronize(account: account) { batch in
            kept = try batch.changes(localOwner: account.bytes)  // wrong
            kept = try batch.changes(localOwner: account.bytes).copies()  // right
          }
          use(kept.count)  // right
        """),
    ApplyClosure(
      description: "a change, collected in an array", error: "Escapable",
      body: """
          try await profile.synchronize(account: account) { batch in
            let changes = try batch.changes(localOwner: account.bytes)
            var kept: [LentChange] = []  // wrong
            var kept: [Change] = []  // right
            for index in changes.indices {
              kept.append(changes[index])  // wrong
              kept.append(changes[index].copy())  // right
            }
            use(kept.count)
          }
        """),
    ApplyClosure(
      description: "a payload, kept beyond the closure that it is lent to", error: "escape",
      body: """
          try await profile.synchronize(account: account) { batch in
            var kept = RawSpan()  // wrong
            var kept: Data?  // right
            try batch.changes(localOwner: account.bytes).forEach { change in
              kept = change.payload  // wrong
              kept = change.payloadCopy  // right
            }
            use(kept.byteCount)  // wrong
            use(kept?.count ?? 0)  // right
          }
        """),
    ApplyClosure(
      description: "a change, used by a task of its own", error: "escap",
      body: """
          try await profile.synchronize(account: account) { batch in
            let changes = try batch.changes(localOwner: account.bytes)
            let change = changes[0]  // wrong
            let change = changes[0].copy()  // right
            Task { use(change.isDeleted ? 1 : 0) }
          }
        """),
    ApplyClosure(
      description: "a change, returned from a function that got the batch",
      error: "cannot return a ~Escapable result",
      body: """
          func first(_ batch: borrowing ChangeBatch) throws -> LentChange {  // wrong
            try batch.changes(localOwner: account.bytes)[0]  // wrong
          func first(_ batch: borrowing ChangeBatch) throws -> Change {  // right
            try batch.changes(localOwner: account.bytes)[0].copy()  // right
          }
          try await profile.synchronize(account: account) { batch in
            use(try first(batch).isDeleted ? 1 : 0)
          }
        """),
  ]
}

/// Serialized: each case starts a compiler.
@Suite("The compiler, given an apply closure", .serialized, .timeLimit(.minutes(5)))
struct KeptChangesTests {
  @Test("refuses", arguments: ApplyClosure.all)
  func refuses(_ closure: ApplyClosure) async throws {
    let errors = try await Compiler.refusals(of: ["Wrong": closure.wrong]).map(\.message)
    #expect(!errors.isEmpty, "it takes this:\n\(closure.wrong)")
    for error in errors { #expect(error.contains(closure.error), "\(error)") }
  }

  @Test("takes each of them without the mistake, from a client that sets no flag")
  func takes() async throws {
    var sources: [String: String] = [:]
    for (number, closure) in ApplyClosure.all.enumerated() {
      #expect(closure.right != closure.wrong)
      sources["Right\(number)"] = closure.right
    }
    for refusal in try await Compiler.refusals(of: sources) {
      Issue.record("\(refusal.file): \(refusal.message)")
    }
  }
}

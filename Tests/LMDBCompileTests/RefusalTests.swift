import CompilerSupport
import Testing

/// Serialized: each case starts a compiler.
@Suite("The compiler", .serialized, .timeLimit(.minutes(5)))
struct RefusalTests {
  static let snippets = lentValues + transactions + cursors + tables

  @Test("refuses", arguments: snippets)
  func refuses(_ snippet: Snippet) async throws {
    // Where a table is of the wrong kind the compiler adds that its type parameters are unknown.
    let errors = try await Compiler.refusals(of: ["Wrong": snippet.wrong]).map(\.message)
      .filter { !$0.hasSuffix("could not be inferred") }
    #expect(!errors.isEmpty, "it takes this:\n\(snippet.wrong)")
    for error in errors {
      #expect(snippet.errors.contains { error.contains($0) }, "\(error)")
    }
  }

  @Test("takes each of them without the mistake, from a client that sets no flag")
  func takes() async throws {
    var sources: [String: String] = [:]
    for (number, snippet) in Self.snippets.enumerated() {
      #expect(snippet.right != snippet.wrong, "\(snippet)")
      sources["Right\(number)"] = snippet.right
    }
    for refusal in try await Compiler.refusals(of: sources) {
      let number = try #require(Int(refusal.file.dropFirst("Right".count)))
      Issue.record("\(Self.snippets[number]): \(refusal.message)")
    }
  }
}

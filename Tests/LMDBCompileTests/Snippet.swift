import Foundation

/// A few lines in two versions: one that the compiler takes and one that it refuses.
///
/// A line marked `// wrong` stands in the refused version only, one marked `// right` in the other
/// only. So the two differ by the mistake and by nothing else, and a refusal has the reason it should.
struct Snippet: Sendable, CustomStringConvertible {
  /// What is refused, for the name of the test.
  let description: String
  /// Every error of the refused version says one of these.
  let errors: [String]
  /// What stands before the function.
  let declarations: String
  let isAsync: Bool
  let lines: [Substring]

  init(
    _ description: String, error: String, or otherError: String? = nil, isAsync: Bool = false,
    declarations: String = "",
    _ body: String
  ) {
    self.description = description
    errors = [error] + (otherError.map { [$0] } ?? [])
    self.isAsync = isAsync
    self.declarations = declarations
    lines = body.split(separator: "\n", omittingEmptySubsequences: false)
  }

  var right: String { source(without: "// wrong") }
  var wrong: String { source(without: "// right") }

  /// A file of its own. All that a client of the module has to write is `import LMDB`.
  private func source(without mark: String) -> String {
    func kept(_ lines: [Substring]) -> String {
      lines.filter { !$0.hasSuffix(mark) }.joined(separator: "\n")
    }
    return """
      import LMDB

      \(kept(declarations.split(separator: "\n", omittingEmptySubsequences: false)))

      private func use(_ byteCount: Int) {}
      private func use(_ bytes: RawSpan) {}

      private func snippet(
        environment: Environment, numbers: Table<UInt64Codec, BytesCodec>,
        names: Table<TextCodec, UInt64Codec>, index: MultiTable<TextCodec, UInt64Codec>,
        words: MultiTable<TextCodec, TextCodec>, packed: Table<UInt64Codec, PackedRecordsCodec>,
        lazy: Table<UInt64Codec, LazyCodec<TextCodec>>
      ) \(isAsync ? "async " : "")throws {
      \(kept(lines))
      }

      """
  }
}

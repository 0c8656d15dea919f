import Testing

@testable import ToolSupport

@Suite("A misspelled word")
struct SuggestionTests {
  static let distances: [(first: String, second: String, distance: Int)] = [
    ("", "", 0), ("", "abc", 3), ("abc", "", 3), ("abc", "abc", 0), ("abc", "ab", 1),
    ("abc", "abcd", 1), ("abc", "abd", 1), ("abc", "acb", 1), ("kitten", "sitting", 3),
    ("ca", "abc", 3),
  ]

  @Test("is as far from another as the slips between them", arguments: distances)
  func distance(first: String, second: String, distance: Int) {
    #expect(Suggestion.editDistance(first, second) == distance)
    #expect(Suggestion.editDistance(second, first) == distance)
  }

  static let words: [(word: String, suggestion: String?)] = [
    ("lsit", "list"), ("lst", "list"), ("list", "list"), ("outbx", "outbox"),
    ("uotbxo", "outbox"), ("show", "show"), ("how", "show"), ("xyz", nil), ("s", nil), ("", nil),
    ("lt", nil), (String(repeating: "list", count: 20), nil),
  ]

  @Test("is answered with the nearest word, or none that is far", arguments: words)
  func suggestion(word: String, suggestion: String?) {
    #expect(Suggestion.nearest(to: word, among: ["list", "show", "outbox"]) == suggestion)
  }
}

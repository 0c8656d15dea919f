import Testing

@testable import ToolSupport

@Suite("Text for a terminal")
struct TerminalTextTests {
  static let escapes: [(text: String, escaped: String)] = [
    ("plain", "plain"), ("Grüße 漢字 🎉", "Grüße 漢字 🎉"),
    ("\u{1B}[31mred", "\\u{1B}[31mred"), ("two\nrows", "two\\u{A}rows"),
    ("tab\there", "tab\\u{9}here"), ("a\u{0}b", "a\\u{0}b"), ("\u{7F}", "\\u{7F}"),
    ("\u{9B}2J", "\\u{9B}2J"), ("\u{202E}txt.exe", "\\u{202E}txt.exe"),
    ("\u{2066}x\u{2069}", "\\u{2066}x\\u{2069}"), ("a\u{2028}b", "a\\u{2028}b"),
    ("👩‍👩‍👧", "👩‍👩‍👧"), ("\r\n", "\\u{D}\\u{A}"),
  ]

  @Test("has nothing left that a terminal would act upon", arguments: escapes)
  func escaped(text: String, escaped: String) {
    #expect(TerminalText.escaped(text) == escaped)
  }

  static let widths: [(text: String, width: Int)] = [
    ("", 0), ("abc", 3), ("é", 1), ("e\u{301}", 1), ("漢字", 4), ("한", 2), ("🎉", 2), ("👩‍👩‍👧", 2),
    ("❤️", 2), ("\u{301}", 0), ("ｆ", 2), ("…", 1), ("Ω", 1),
  ]

  @Test("is as wide as the columns it takes", arguments: widths)
  func width(text: String, width: Int) {
    #expect(TerminalText.width(of: text) == width)
  }

  static let truncations: [(text: String, columns: Int, truncated: String)] = [
    ("abcdef", 6, "abcdef"), ("abcdef", 5, "abcd…"), ("abcdef", 1, "…"), ("漢字漢", 6, "漢字漢"),
    ("漢字漢", 5, "漢字…"), ("漢字漢", 4, "漢…"), ("", 1, ""),
  ]

  @Test("is cut before a column that it would not fit into", arguments: truncations)
  func truncated(text: String, columns: Int, truncated: String) {
    #expect(TerminalText.truncated(text, to: columns) == truncated)
  }

  static let wraps: [(text: String, columns: Int, lines: [String])] = [
    ("a bb ccc", 4, ["a bb", "ccc"]), ("a bb ccc", 8, ["a bb ccc"]), ("", 4, [""]),
    ("abcdefgh i", 4, ["abcdefgh", "i"]), ("a\n\nb", 4, ["a", "", "b"]), ("a  b", 4, ["a b"]),
  ]

  @Test("is broken at spaces and newlines", arguments: wraps)
  func wrapped(text: String, columns: Int, lines: [String]) {
    #expect(TerminalText.wrapped(text, to: columns) == lines)
  }
}

import Testing

@testable import ToolSupport

@Suite("A table")
struct TextTableTests {
  private var table: TextTable {
    var table = TextTable([
      .init("PROFILE"), .init("OWNER", isShrinkable: true), .init("RECORDS", .trailing),
      .init("NOTE", isShrinkable: true),
    ])
    table.append(["p1", "anna@example.org at hub one", "13,000", ""])
    table.append(["p22", "漢字", "7", "set aside since the last sign-in"])
    return table
  }

  @Test("that goes into a file is not cut")
  func uncut() {
    #expect(
      table.lines().joined(separator: "\n") == """
        PROFILE  OWNER                        RECORDS  NOTE
        p1       anna@example.org at hub one   13,000
        p22      漢字                               7  set aside since the last sign-in
        """)
  }

  @Test("that is too wide for the terminal is cut in its widest columns that may shrink")
  func cut() {
    #expect(
      table.lines(width: 60).joined(separator: "\n") == """
        PROFILE  OWNER                 RECORDS  NOTE
        p1       anna@example.org at…   13,000
        p22      漢字                        7  set aside since the…
        """)
  }

  @Test("never takes more columns than the terminal has, while it can shrink", arguments: 38...100)
  func fits(width: Int) {
    let widest = table.lines(width: width).map { TerminalText.width(of: $0) }.max() ?? 0
    #expect(widest <= width)
  }

  @Test("shows what may not be cut whole, also where the line gets too long")
  func tooNarrow() {
    #expect(
      table.lines(width: 10).joined(separator: "\n") == """
        PROFILE  OWNER     RECORDS  NOTE
        p1       anna@ex…   13,000
        p22      漢字            7  set asi…
        """)
  }

  @Test("keeps a row in one line, whatever a cell holds")
  func forgedRow() {
    var table = TextTable([.init("ID"), .init("N")])
    table.append(["a\nb  99", "1"])
    #expect(table.lines() == ["ID           N", "a\\u{A}b  99  1"])
  }

  @Test("without rows has its titles")
  func empty() {
    let table = TextTable([.init("ID"), .init("N", .trailing)])
    #expect(table.isEmpty)
    #expect(table.lines(width: 80) == ["ID  N"])
  }
}

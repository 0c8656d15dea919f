import Testing

@testable import ToolSupport

@Suite("A console")
struct ConsoleTests {
  struct ColorCase: Sendable {
    let choice: ColorChoice
    let isTerminal: Bool
    let environment: [String: String]
    let isColored: Bool
  }

  static let colors: [ColorCase] = [
    .init(choice: .auto, isTerminal: true, environment: [:], isColored: true),
    .init(choice: .auto, isTerminal: false, environment: [:], isColored: false),
    .init(choice: .auto, isTerminal: true, environment: ["NO_COLOR": "1"], isColored: false),
    .init(choice: .auto, isTerminal: true, environment: ["NO_COLOR": ""], isColored: true),
    .init(choice: .auto, isTerminal: true, environment: ["TERM": "dumb"], isColored: false),
    .init(choice: .never, isTerminal: true, environment: [:], isColored: false),
    .init(choice: .always, isTerminal: false, environment: ["NO_COLOR": "1"], isColored: true),
  ]

  @Test("colors where the option, the terminal and NO_COLOR say so", arguments: colors)
  func color(_ each: ColorCase) {
    let sink = RecordingSink(terminalOf: each.isTerminal ? 80 : nil)
    let console = RecordedConsole(output: sink, environment: each.environment).console
    console.choose(each.choice)
    #expect(console.styled("so", .good) == (each.isColored ? "\u{1B}[32mso\u{1B}[0m" : "so"))
  }

  @Test("has the width of its terminal, and none where nothing should be cut")
  func width() {
    let terminal = RecordingSink(terminalOf: 132)
    #expect(RecordedConsole(output: terminal).console.width == 132)
    #expect(RecordedConsole(output: terminal, environment: ["COLUMNS": "50"]).console.width == 50)
    #expect(RecordedConsole(output: terminal, environment: ["COLUMNS": "x"]).console.width == 132)
    #expect(RecordedConsole(environment: ["COLUMNS": "50"]).console.width == nil)
  }

  @Test("prints results and notes to different outputs, and lines together")
  func outputs() throws {
    let recorded = RecordedConsole()
    try recorded.console.print("result")
    try recorded.console.print(["a", "b"])
    try recorded.console.print([])
    recorded.console.note("note")
    #expect(recorded.output.text == "result\na\nb\n")
    #expect(recorded.errorOutput.text == "note\n")
  }

  @Test("moves the status line out of the way of a line, and draws it again below")
  func statusLine() throws {
    let recorded = RecordedConsole(
      output: RecordingSink(terminalOf: 80), errorOutput: RecordingSink(terminalOf: 80))
    recorded.console.showStatus("50 %")
    recorded.console.note("note")
    try recorded.console.print("result")
    recorded.console.showStatus(nil)
    recorded.console.note("end")
    let clear = "\r\u{1B}[K"
    let draw = "\r50 %\u{1B}[K"
    #expect(
      recorded.errorOutput.text == draw + clear + "note\n" + draw + clear + draw + clear + "end\n")
  }

  @Test("draws no status line where no terminal is")
  func noTerminal() {
    let recorded = RecordedConsole(output: RecordingSink(terminalOf: 80))
    recorded.console.showStatus("50 %")
    recorded.console.showStatus(nil)
    #expect(recorded.errorOutput.text == "")
  }

  @Test("says that results could not be written, and drops notes that nobody can read")
  func failures() {
    let full = OutputError.failed(code: 28)
    let recorded = RecordedConsole(
      output: RecordingSink(failingWith: full), errorOutput: RecordingSink(failingWith: full))
    #expect(throws: full) { try recorded.console.print("result") }
    recorded.console.note("note")
  }

  @Test("prints JSON with its members in the order of their names")
  func json() throws {
    struct Profile: Encodable {
      let records = 2
      let owner: String? = nil
      let id = "a/b\u{1B}"
      let counts = ["z": 1, "a": 2]
    }
    let recorded = RecordedConsole()
    try recorded.console.printJSON(Profile())
    #expect(
      recorded.output.text == """
        {
          "counts" : {
            "a" : 2,
            "z" : 1
          },
          "id" : "a/b\\u001b",
          "records" : 2
        }

        """)
  }
}

import Testing

@testable import ToolSupport

@Suite("Declarations of a command")
struct CommandProblemsTests {
  @Test("that are sound have no problems")
  func sound() {
    #expect(SampleTool.root.problems() == [])
  }

  static let unsoundCommands: [(command: Command, problem: String)] = [
    (leaf("a", [Flag("x", help: ""), Flag("x", help: "")]), "'--x' is declared twice"),
    (
      leaf("a", [Flag("x", short: "y", help: ""), Flag("z", short: "y", help: "")]),
      "'-y' is declared twice"
    ),
    (leaf("a", [Flag("help", help: "")]), "'--help' is declared twice"),
    (leaf("a", [Flag("hub", short: "h", help: "")]), "'-h' is declared twice"),
    (
      Command(
        "a", summary: "", parameters: [Flag("x", help: "")],
        subcommands: [leaf("b", [Flag("x", help: "")])]),
      "'--x' is declared twice"
    ),
    (
      Command("a", summary: "", subcommands: [leaf("b", []), leaf("b", [])]),
      "'b' is declared twice"
    ),
    (Command("a", summary: "", subcommands: [leaf("help", [])]), "'help' is declared twice"),
    (Command("a", summary: "", subcommands: []), "'a' has neither an action nor subcommands"),
    (
      Command(
        "a", summary: "", parameters: [Argument.required("x", .string, help: "")],
        subcommands: [leaf("b", [])]),
      "'a' has subcommands, so it can't have arguments"
    ),
    (
      leaf("A", []),
      "'A' is no name: use ASCII lowercase letters, digits and inner dashes"
    ),
    (
      leaf("a", [Flag("-x", help: "")]),
      "'-x' is no name: use ASCII lowercase letters, digits and inner dashes"
    ),
    (leaf("a", [Flag("x", short: "1", help: "")]), "'-1' is no short name: use an ASCII letter"),
    (
      leaf(
        "a",
        [
          Argument.repeated("x", .string, help: ""), Argument.repeated("y", .string, help: ""),
        ]),
      "'<y>' of 'a' stands after '<x>', which takes all"
    ),
    (
      leaf(
        "a",
        [
          Argument.optional("x", .string, help: ""), Argument.required("y", .string, help: ""),
        ]),
      "'<y>' of 'a' is required but stands after an optional argument"
    ),
  ]

  @Test("that a parser would have to guess about are named", arguments: unsoundCommands)
  func problem(command: Command, problem: String) {
    let builtIn = BuiltInParameters.all.map(\.declaration)
    #expect(command.problems(inherited: builtIn) == [problem])
  }

  @Test("that are unsound stop the tool before it runs")
  func trap() async {
    await #expect(processExitsWith: .failure) {
      _ = Tool(Command("a", summary: "", subcommands: []), version: "1")
    }
  }

  private static func leaf(_ name: String, _ parameters: [any Parameter]) -> Command {
    Command(name, summary: "", parameters: parameters) { _ in .ok }
  }
}

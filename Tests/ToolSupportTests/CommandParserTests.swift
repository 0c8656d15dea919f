import Testing

@testable import ToolSupport

@Suite("A command line")
struct CommandParserTests {
  static let understood: [(words: String, printed: String)] = [
    ("--store D list", "store=D quiet=false json=false order=name limit=none labels=[]"),
    ("list --store D", "store=D quiet=false json=false order=name limit=none labels=[]"),
    ("--store=D list -j", "store=D quiet=false json=true order=name limit=none labels=[]"),
    ("-sD -q list", "store=D quiet=true json=false order=name limit=none labels=[]"),
    ("-s D list -qj", "store=D quiet=true json=true order=name limit=none labels=[]"),
    ("-qsD list -jn5", "store=D quiet=true json=true order=name limit=5 labels=[]"),
    ("--store == list", "store=== quiet=false json=false order=name limit=none labels=[]"),
    ("--store=a=b list", "store=a=b quiet=false json=false order=name limit=none labels=[]"),
    ("--store=--json list", "store=--json quiet=false json=false order=name limit=none labels=[]"),
    ("--store - list", "store=- quiet=false json=false order=name limit=none labels=[]"),
    ("--store list list", "store=list quiet=false json=false order=name limit=none labels=[]"),
    (
      "-s D list --order size -l a --label=b -lc",
      "store=D quiet=false json=false order=size limit=none labels=[\"a\", \"b\", \"c\"]"
    ),
    ("-s D -q -q list", "store=D quiet=true json=false order=name limit=none labels=[]"),
    ("-s D show p", "p []"),
    ("-s D show p r1 r2", "p [\"r1\", \"r2\"]"),
    ("-s D show -- --json -q", "--json [\"-q\"]"),
    ("-s D show p -- r --", "p [\"r\", \"--\"]"),
    ("-s D show list help", "list [\"help\"]"),
    ("-s D show -", "- []"),
  ]

  @Test("is understood", arguments: understood)
  func isUnderstood(words: String, printed: String) async {
    let recorded = RecordedConsole()
    let exitCode = await SampleTool.tool.run(split(words), on: recorded.console)
    #expect(recorded.errorOutput.text == "")
    #expect(recorded.output.text == printed + "\n")
    #expect(exitCode == .ok)
  }

  static let refused: [(words: String, message: String, command: String)] = [
    ("", "a subcommand is missing", "sample"),
    ("-s D", "a subcommand is missing", "sample"),
    ("-s D lst", "unknown subcommand 'lst'; did you mean 'list'?", "sample"),
    ("-s D lsit", "unknown subcommand 'lsit'; did you mean 'list'?", "sample"),
    ("-s D erase", "unknown subcommand 'erase'", "sample"),
    ("list", "missing option '--store <path>'", "sample list"),
    ("list -s D --jsno", "unknown option '--jsno'; did you mean '--json'?", "sample list"),
    ("list -s D --json=yes", "'--json' takes no value", "sample list"),
    ("list -s D -x", "unknown option '-x'", "sample list"),
    ("list -s D -jx", "unknown option '-x'", "sample list"),
    ("-s D --json list", "'--json' belongs to 'list'; write it after that word", "sample"),
    ("-s D -j list", "'-j' belongs to 'list'; write it after that word", "sample"),
    ("-s D -s E list", "'--store' is given twice; give it once", "sample"),
    ("--store D list --store D", "'--store' is given twice; give it once", "sample list"),
    ("list --store", "the value of '--store <path>' is missing", "sample list"),
    ("list -s", "the value of '--store <path>' is missing", "sample list"),
    (
      "--store --quiet list",
      "the value of '--store <path>' is missing; "
        + "if '--quiet' is meant, write it after '--store='",
      "sample"
    ),
    (
      "--store= list", "'' is no value for '--store <path>': expected a path, not an empty text",
      "sample list"
    ),
    (
      "list -s D -n 501",
      "'501' is no value for '--limit <count>': expected a whole number from 1 to 500",
      "sample list"
    ),
    (
      "list -s D --order age",
      "'age' is no value for '--order <name|size>': expected one of 'name', 'size'",
      "sample list"
    ),
    ("list -s D extra", "unexpected argument 'extra'", "sample list"),
    ("list -s D -- -q", "unexpected argument '-q'", "sample list"),
    ("show -s D", "missing argument '<profile>'", "sample show"),
    ("check -s D 1 2", "unexpected argument '2'", "sample check"),
    ("-s D \u{1B}[2J", "unknown subcommand '\\u{1B}[2J'", "sample"),
    ("help lst", "unknown subcommand 'lst'; did you mean 'list'?", "sample"),
  ]

  @Test("that can't be understood says what is wrong and where help is", arguments: refused)
  func isRefused(words: String, message: String, command: String) async {
    let recorded = RecordedConsole()
    let exitCode = await SampleTool.tool.run(split(words), on: recorded.console)
    #expect(
      recorded.errorOutput.text == "sample: \(message)\nSee '\(command) --help'.\n")
    #expect(recorded.output.text == "")
    #expect(exitCode == .usage)
  }

  @Test("with a negative number takes it after two dashes")
  func negativeNumber() async {
    let recorded = RecordedConsole()
    #expect(
      await SampleTool.tool.run(split("-s D check -- -5"), on: recorded.console) == .checkFailed)
    #expect(await SampleTool.tool.run(split("-s D check -5"), on: recorded.console) == .usage)
  }

  static let askingForHelp: [(words: String, overview: String)] = [
    ("--help", "Looks at a store."),
    ("-h", "Looks at a store."),
    ("-qh", "Looks at a store."),
    ("help", "Looks at a store."),
    ("help list", "Lists every profile."),
    ("list --help", "Lists every profile."),
    ("list --nonsense --help", "Lists every profile."),
    ("nonsense --help", "Looks at a store."),
    ("show --help p", "Shows one profile."),
  ]

  @Test("that asks for help gets it, whatever else is wrong", arguments: askingForHelp)
  func help(words: String, overview: String) async {
    let recorded = RecordedConsole()
    let exitCode = await SampleTool.tool.run(split(words), on: recorded.console)
    #expect(recorded.output.text.hasPrefix("OVERVIEW: \(overview)\n"))
    #expect(exitCode == .ok)
  }

  @Test("with the word for help behind two dashes does not ask for help")
  func helpAsArgument() async {
    let recorded = RecordedConsole()
    #expect(
      await SampleTool.tool.run(split("-s D show -- --help"), on: recorded.console) == .ok)
    #expect(recorded.output.text == "--help []\n")
  }

  @Test(
    "that asks for the version gets name and version", arguments: ["--version", "list --version"])
  func version(words: String) async {
    let recorded = RecordedConsole()
    #expect(await SampleTool.tool.run(split(words), on: recorded.console) == .ok)
    #expect(recorded.output.text == "sample 1.2.3\n")
  }

  @Test("without a subcommand runs the command's own action, if it has one")
  func ownAction() async {
    let serve = Command("serve", summary: "Serves.") { _ in .checkFailed }
    let root = Command("hub", summary: "A hub.", subcommands: [serve]) { _ in .unavailable }
    let tool = Tool(root, version: "1")
    let recorded = RecordedConsole()
    #expect(await tool.run([], on: recorded.console) == .unavailable)
    #expect(await tool.run(["serve"], on: recorded.console) == .checkFailed)
    #expect(await tool.run(["server"], on: recorded.console) == .usage)
  }

  private func split(_ words: String) -> [String] {
    words.split(separator: " ").map(String.init)
  }
}

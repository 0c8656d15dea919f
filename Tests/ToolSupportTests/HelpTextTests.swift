import Testing

@testable import ToolSupport

@Suite("The help")
struct HelpTextTests {
  @Test("of a tool names its options, subcommands and exit codes")
  func root() {
    let help = HelpText.render(
      path: [SampleTool.root], meanings: [.checkFailed: "A check of the store failed."])
    #expect(
      help == """
        OVERVIEW: Looks at a store.

        USAGE: sample --store <path> [--quiet] <subcommand>

        OPTIONS:
          -s, --store <path>      The directory.
          -q, --quiet             Say nothing.
          --color <auto|never|always>
                                  When to use colors; 'auto' means on a terminal, if
                                  NO_COLOR is not set. (default: auto)
          --version               Show the version.
          -h, --help              Show this help.

        SUBCOMMANDS:
          list   Lists every profile.
          show   Shows one profile.
          check  Checks a store.

        EXIT CODES:
          0   Done, or what was asked about is so.
          1   A check of the store failed.
          64  The command line was not understood.
          70  A defect of this tool; please report it.
          74  Reading or writing failed.
        """)
  }

  @Test("of a subcommand has its examples, and the options of those above it")
  func subcommand() {
    let help = HelpText.render(path: [SampleTool.root, SampleTool.list])
    let beforeExitCodes = help.firstRange(of: "\n\nEXIT CODES:").map { help[..<$0.lowerBound] }
    #expect(
      beforeExitCodes == """
        OVERVIEW: Lists every profile.

        Nothing is changed.

        A store that an app has open may be listed.

        USAGE: sample --store <path> [--quiet] list [--json] [--order <name|size>]
            [--limit <count>] [--label <label> ...]

        OPTIONS:
          -s, --store <path>      The directory.
          -q, --quiet             Say nothing.
          -j, --json              Print JSON.
          --order <name|size>     What to sort by. (default: name)
          -n, --limit <count>     How many to print at most.
          -l, --label <label>     Only those with this label. (may be given more than
                                  once)
          --color <auto|never|always>
                                  When to use colors; 'auto' means on a terminal, if
                                  NO_COLOR is not set. (default: auto)
          --version               Show the version.
          -h, --help              Show this help.

        EXAMPLES:
          sample --store ~/store list --json
              Lists the profiles as JSON.
        """)
  }

  @Test("of a command with arguments lists them before the options")
  func arguments() {
    let help = HelpText.render(path: [SampleTool.root, SampleTool.show])
    #expect(
      help.contains(
        """
        USAGE: sample --store <path> [--quiet] show <profile> [<record> ...]

        ARGUMENTS:
          <profile>  Which one.
          <record>   Which of its records. (may be given more than once)

        OPTIONS:
        """))
  }

  @Test("fills the terminal, but no more than 100 columns", arguments: [40, 60, 80, 100, 200])
  func width(columns: Int) {
    let help = HelpText.render(path: [SampleTool.root, SampleTool.list], columns: columns)
    let longest = help.split(separator: "\n").map(\.count).max() ?? 0
    #expect(longest <= min(columns, 100))
  }
}

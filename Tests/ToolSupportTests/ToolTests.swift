import Testing

@testable import ToolSupport

@Suite("A tool")
struct ToolTests {
  private struct StoreError: Error {}
  private struct StrangeError: Error {}

  private func run(failingWith error: any Error) async -> (exitCode: ExitCode, said: String) {
    let command = Command("look", summary: "Looks.") { _ in throw error }
    let tool = Tool(command, version: "1") { error in
      error is StoreError ? ToolFailure(.dataError, "the store is damaged; restore it") : nil
    }
    let recorded = RecordedConsole()
    let exitCode = await tool.run([], on: recorded.console)
    return (exitCode, recorded.errorOutput.text)
  }

  @Test("says in one sentence what failed, and ends with the code for it")
  func failure() async {
    let result = await run(failingWith: ToolFailure(.noInput, "'x' is no store; name a store"))
    #expect(result == (.noInput, "look: 'x' is no store; name a store\n"))
  }

  @Test("translates a library's error")
  func translated() async {
    #expect(
      await run(failingWith: StoreError())
        == (.dataError, "look: the store is damaged; restore it\n"))
  }

  @Test("owns up to an error that it has no translation for")
  func unknown() async {
    #expect(
      await run(failingWith: StrangeError())
        == (.internalError, "look: unexpected error: StrangeError()\n"))
  }

  @Test("shows the way to the help when a command refuses its own words")
  func usage() async {
    #expect(
      await run(failingWith: UsageError("give either '--a' or '--b'"))
        == (.usage, "look: give either '--a' or '--b'\nSee 'look --help'.\n"))
  }

  @Test("ends well when the reader of its output is gone")
  func closedPipe() async {
    #expect(await run(failingWith: OutputError.closedPipe) == (.ok, ""))
  }

  @Test("prints a message on one line, whatever is in it")
  func hostileMessage() async {
    let result = await run(failingWith: ToolFailure(.noInput, "'a\nlook: fine\u{1B}[2J'"))
    #expect(result.said == "look: 'a\\u{A}look: fine\\u{1B}[2J'\n")
  }

  @Test("colors as it is told")
  func color() async {
    let command = Command("look", summary: "Looks.") { invocation in
      try invocation.console.print(invocation.console.styled("so", .bold))
      return .ok
    }
    let tool = Tool(command, version: "1")
    let recorded = RecordedConsole()
    #expect(await tool.run(["--color", "always"], on: recorded.console) == .ok)
    #expect(recorded.output.text == "\u{1B}[1mso\u{1B}[0m\n")
  }

  @Test("stops with a sentence when a command reads what it does not declare")
  func undeclared() async {
    await #expect(processExitsWith: .failure) {
      let command = Command("look", summary: "Looks.") { invocation in
        invocation[Flag("json", help: "")] ? .ok : .checkFailed
      }
      await Tool(command, version: "1").main([])
    }
  }

  @Test("documents each exit code once, with the numbers of sysexits")
  func exitCodes() {
    #expect(
      ExitCode.allCases.map(\.rawValue) == [0, 1, 64, 65, 66, 69, 70, 73, 74, 75, 77, 78])
    #expect(Set(ExitCode.allCases.map(\.explanation)).count == ExitCode.allCases.count)
  }
}

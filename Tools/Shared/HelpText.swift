/// The text of `--help`, from the declarations that the parser reads too.
enum HelpText {
  /// - Parameters:
  ///   - path: the commands from the root to the one that is explained.
  ///   - meanings: what exit codes mean for this tool. Those that every tool may end with are listed
  ///     without one, too.
  ///   - columns: the width to fill; text takes at most 100 of it.
  static func render(
    path: [Command], meanings: [ExitCode: String] = [:], columns: Int = 80
  ) -> String {
    guard let command = path.last else {
      preconditionFailure("help is about a command: give the path to it")
    }
    let layout = Layout(columns: min(max(columns, 40), 100))
    let parameters = path.flatMap(\.declarations)
    let options = parameters.filter { !$0.isArgument } + BuiltInParameters.all.map(\.declaration)
    let sections = [
      layout.paragraphs("OVERVIEW: " + command.summary),
      layout.paragraphs(command.discussion),
      layout.usage(path),
      layout.list("ARGUMENTS:", parameters.filter(\.isArgument).map(row)),
      layout.list("OPTIONS:", options.map(row)),
      layout.list("SUBCOMMANDS:", command.subcommands.map { ($0.name, $0.summary) }),
      layout.examples(command.examples),
      layout.list("EXIT CODES:", exitCodeRows(meanings)),
    ]
    return sections.filter { !$0.isEmpty }.map { $0.joined(separator: "\n") }
      .joined(separator: "\n\n")
  }

  private static func row(_ declaration: ParameterDeclaration) -> (label: String, text: String) {
    let short = declaration.short.map { "-\($0), " } ?? ""
    var text = declaration.help
    if let value = declaration.defaultText { text += " (default: \(value))" }
    if declaration.occurrence == .repeated { text += " (may be given more than once)" }
    return (short + declaration.spelling, text)
  }

  private static func exitCodeRows(
    _ meanings: [ExitCode: String]
  ) -> [(label: String, text: String)] {
    let ofEveryTool: [ExitCode] = [.ok, .usage, .internalError, .inputOutput]
    return ExitCode.allCases.filter { meanings[$0] != nil || ofEveryTool.contains($0) }
      .map { code in (String(code.rawValue), meanings[code] ?? code.explanation) }
  }
}

private struct Layout {
  let columns: Int
  private let textColumn = 26

  func paragraphs(_ text: String) -> [String] {
    text.isEmpty ? [] : TerminalText.wrapped(text, to: columns)
  }

  func usage(_ path: [Command]) -> [String] {
    var words = ["USAGE:"]
    for command in path {
      words.append(command.name)
      words += command.declarations.map(synopsis)
    }
    if let command = path.last, !command.subcommands.isEmpty {
      words.append(command.action == nil ? "<subcommand>" : "[<subcommand>]")
    }
    // A synopsis is broken between parameters, not inside one.
    let unbroken = words.map { $0.replacing(" ", with: "\u{A0}") }.joined(separator: " ")
    let lines = TerminalText.wrapped(unbroken, to: columns - 4)
    return lines.enumerated().map { index, line in
      (index == 0 ? "" : "    ") + line.replacing("\u{A0}", with: " ")
    }
  }

  private func synopsis(_ declaration: ParameterDeclaration) -> String {
    switch declaration.occurrence {
    case .required: declaration.spelling
    case .optional: "[\(declaration.spelling)]"
    case .repeated: "[\(declaration.spelling) ...]"
    }
  }

  func list(_ title: String, _ rows: [(label: String, text: String)]) -> [String] {
    guard !rows.isEmpty else { return [] }
    let longest = rows.map { TerminalText.width(of: $0.label) }.max() ?? 0
    let column = min(longest + 4, textColumn)
    return [title] + rows.flatMap { entry($0.label, $0.text, at: column) }
  }

  private func entry(_ label: String, _ text: String, at column: Int) -> [String] {
    var lines = TerminalText.wrapped(text, to: columns - column)
      .map { String(repeating: " ", count: column) + $0 }
    let head = "  " + label
    let gap = column - TerminalText.width(of: head)
    guard gap >= 2, let first = lines.first else { return [head] + lines }
    lines[0] = head + String(repeating: " ", count: gap) + first.dropFirst(column)
    return lines
  }

  func examples(_ examples: [Command.Example]) -> [String] {
    guard !examples.isEmpty else { return [] }
    return ["EXAMPLES:"]
      + examples.flatMap { example in
        // The command line is never broken, so that it can be copied.
        ["  " + example.line]
          + TerminalText.wrapped(example.explanation, to: columns - 6).map { "      " + $0 }
      }
  }
}

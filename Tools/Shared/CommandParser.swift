/// Turns words into what is to be done; a pure function of the declarations and the words.
///
/// The grammar: `--name value`, `--name=value`, `-n value`, `-nvalue`, flags in groups `-ab`; `--`
/// ends options; a lone `-` is an ordinary word. A value that begins with `-` needs the `=` form,
/// so that a forgotten value doesn't swallow the next option.
struct CommandParser {
  /// What the words ask for. `path` is never empty: the root command comes first.
  enum Outcome {
    case run(path: [Command], values: ParameterValues)
    case help(path: [Command])
    case version
  }

  private var path: [Command]
  private var texts: [String: [String]] = [:]
  private var positionals: [String] = []
  private var remaining: ArraySlice<String>

  /// Parses the words after the tool's name.
  static func parse(_ words: [String], for root: Command) throws(UsageError) -> Outcome {
    var parser = CommandParser(path: [root], remaining: words[...])
    do {
      return try parser.outcome()
    } catch {
      // Who asks for help gets it, also when the rest of the line is wrong.
      let rest = parser.remaining.prefix { $0 != "--" }
      if rest.contains("--help") || rest.contains("-h") { return .help(path: parser.path) }
      throw UsageError(error.message, commandPath: parser.path.map(\.name))
    }
  }

  private init(path: [Command], remaining: ArraySlice<String>) {
    self.path = path
    self.remaining = remaining
  }

  private mutating func outcome() throws(UsageError) -> Outcome {
    var optionsEnded = false
    while let word = remaining.popFirst() {
      if optionsEnded {
        positionals.append(word)
      } else if word == "--" {
        optionsEnded = true
      } else if word == "--help" || word == "-h" {
        return .help(path: path)
      } else if word.hasPrefix("--") {
        try readLong(word)
      } else if word.hasPrefix("-") && word != "-" {
        try readShortGroup(word)
      } else if positionals.isEmpty, !command.subcommands.isEmpty {
        if word == "help" { return try helpOutcome() }
        try descend(to: word)
      } else {
        positionals.append(word)
      }
    }
    // Flags of the parser's own, alone or in a group of short ones.
    if texts[BuiltInParameters.help.declaration.key] != nil { return .help(path: path) }
    if texts[BuiltInParameters.version.declaration.key] != nil { return .version }
    return try runOutcome()
  }

  private var command: Command {
    // The path begins with the root and only grows.
    path[path.count - 1]
  }

  private var known: [any Parameter] {
    path.flatMap(\.parameters) + BuiltInParameters.all
  }

  // MARK: - Subcommands

  private mutating func descend(to word: String) throws(UsageError) {
    guard let subcommand = command.subcommand(named: word) else {
      throw unknown("subcommand", word, among: command.subcommands.map(\.name))
    }
    path.append(subcommand)
  }

  private mutating func helpOutcome() throws(UsageError) -> Outcome {
    while let word = remaining.popFirst() { try descend(to: word) }
    return .help(path: path)
  }

  private func runOutcome() throws(UsageError) -> Outcome {
    if command.action == nil { throw UsageError("a subcommand is missing") }
    let texts = try withPositionals()
    var values = ParameterValues()
    for parameter in known {
      try values.add(parameter, texts: texts[parameter.declaration.key] ?? [])
    }
    return .run(path: path, values: values)
  }

  private func withPositionals() throws(UsageError) -> [String: [String]] {
    var texts = texts
    var rest = positionals[...]
    for argument in command.declarations where argument.isArgument {
      if argument.occurrence == .repeated {
        texts[argument.key] = Array(rest)
        rest = []
      } else if let word = rest.popFirst() {
        texts[argument.key] = [word]
      }
    }
    if let word = rest.first {
      throw UsageError("unexpected argument \(TerminalText.quoted(word))")
    }
    return texts
  }

  // MARK: - Options

  private mutating func readLong(_ word: String) throws(UsageError) {
    let parts = word.dropFirst(2).split(
      separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    let name = String(parts.first ?? "")
    let declarations = known.map(\.declaration).filter { !$0.isArgument }
    guard let declaration = declarations.first(where: { $0.name == name }) else {
      throw unknownOption("--" + name, among: declarations) { $0.name == name }
    }
    try record(declaration, as: "--" + name, joined: parts.count == 2 ? String(parts[1]) : nil)
  }

  private mutating func readShortGroup(_ word: String) throws(UsageError) {
    var letters = word.dropFirst()
    while let letter = letters.popFirst() {
      let declarations = known.map(\.declaration)
      guard let declaration = declarations.first(where: { $0.short == letter }) else {
        throw unknownOption("-\(letter)", among: []) { $0.short == letter }
      }
      let joined = declaration.takesValue && !letters.isEmpty ? String(letters) : nil
      try record(declaration, as: "-\(letter)", joined: joined)
      if declaration.takesValue { return }
    }
  }

  private mutating func record(
    _ declaration: ParameterDeclaration, as spelling: String, joined: String?
  ) throws(UsageError) {
    guard declaration.takesValue else {
      if joined != nil { throw UsageError("'\(spelling)' takes no value") }
      texts[declaration.key] = [""]
      return
    }
    guard let text = joined ?? nextValue() else {
      throw UsageError("the value of '\(declaration.spelling)' is missing" + dashRemedy(spelling))
    }
    if declaration.occurrence != .repeated && texts[declaration.key] != nil {
      throw UsageError("'--\(declaration.name)' is given twice; give it once")
    }
    texts[declaration.key, default: []].append(text)
  }

  private mutating func nextValue() -> String? {
    guard let next = remaining.first, !next.hasPrefix("-") || next == "-" else { return nil }
    return remaining.popFirst()
  }

  private func dashRemedy(_ spelling: String) -> String {
    guard let next = remaining.first, spelling.hasPrefix("--") else { return "" }
    return "; if \(TerminalText.quoted(next)) is meant, write it after '\(spelling)='"
  }

  // MARK: - Errors

  private func unknown(_ kind: String, _ word: String, among names: [String]) -> UsageError {
    let suggestion = Suggestion.nearest(to: word, among: names)
    return UsageError(
      "unknown \(kind) \(TerminalText.quoted(word))"
        + (suggestion.map { "; did you mean '\($0)'?" } ?? ""))
  }

  private func unknownOption(
    _ word: String, among declarations: [ParameterDeclaration],
    isMeant: (ParameterDeclaration) -> Bool
  ) -> UsageError {
    if let owner = command.subcommands.first(where: { $0.declarations.contains(where: isMeant) }) {
      let quoted = TerminalText.quoted(word)
      return UsageError("\(quoted) belongs to '\(owner.name)'; write it after that word")
    }
    return unknown("option", word, among: declarations.map { "--\($0.name)" })
  }
}

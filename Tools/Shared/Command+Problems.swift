extension Command {
  /// What is wrong with the declarations of this command and those below it: a parser for them
  /// would have to guess. Empty if nothing is. ``Tool`` traps on the first.
  func problems(inherited: [ParameterDeclaration] = []) -> [String] {
    var problems: [String] = []
    if action == nil && subcommands.isEmpty {
      problems.append("'\(name)' has neither an action nor subcommands")
    }
    if !subcommands.isEmpty && declarations.contains(where: \.isArgument) {
      problems.append("'\(name)' has subcommands, so it can't have arguments")
    }
    let words = [name] + declarations.map(\.name)
    for word in words where !Command.isWord(word) {
      problems.append(
        "'\(word)' is no name: use ASCII lowercase letters, digits and inner dashes")
    }
    for short in declarations.compactMap(\.short) where !(short.isASCII && short.isLetter) {
      problems.append("'-\(short)' is no short name: use an ASCII letter")
    }
    let known = inherited + declarations
    problems += Command.repetitions(known.map(\.key))
    problems += Command.repetitions(known.compactMap(\.short).map { "-\($0)" })
    problems += Command.repetitions(subcommands.map(\.name) + (subcommands.isEmpty ? [] : ["help"]))
    problems += argumentOrderProblems
    let options = known.filter { !$0.isArgument }
    return problems + subcommands.flatMap { $0.problems(inherited: options) }
  }

  private var argumentOrderProblems: [String] {
    let arguments = declarations.filter(\.isArgument)
    return zip(arguments, arguments.dropFirst()).compactMap { earlier, later in
      switch (earlier.occurrence, later.occurrence) {
      case (.repeated, _):
        "'\(later.spelling)' of '\(name)' stands after '\(earlier.spelling)', which takes all"
      case (.optional, .required):
        "'\(later.spelling)' of '\(name)' is required but stands after an optional argument"
      default:
        nil
      }
    }
  }

  private static func isWord(_ word: String) -> Bool {
    let allowed = word.utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
        UInt8(ascii: "-"):
        true
      default:
        false
      }
    }
    return allowed && !word.isEmpty && !word.hasPrefix("-") && !word.hasSuffix("-")
  }

  private static func repetitions(_ names: [String]) -> [String] {
    var seen: Set<String> = []
    return names.filter { !seen.insert($0).inserted }.map { "'\($0)' is declared twice" }
  }
}

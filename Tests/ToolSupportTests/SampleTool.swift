@testable import ToolSupport

/// A tool with one of everything, for the tests of the parser and the help.
enum SampleTool {
  enum Order: String, CaseIterable, Sendable {
    case name, size
  }

  static let store = Option.required("store", short: "s", .path, help: "The directory.")
  static let quiet = Flag("quiet", short: "q", help: "Say nothing.")

  static let json = Flag("json", short: "j", help: "Print JSON.")
  static let order = Option.defaulted(
    "order", .choice, to: Order.name, help: "What to sort by.")
  static let limit = Option.optional(
    "limit", short: "n", .integer(in: 1...500), help: "How many to print at most.")
  static let label = Option.repeated(
    "label", short: "l", .string.named("label"), help: "Only those with this label.")
  static let list = Command(
    "list", summary: "Lists every profile.",
    discussion: "Nothing is changed.\n\nA store that an app has open may be listed.",
    parameters: [json, order, limit, label],
    examples: [.init("sample --store ~/store list --json", "Lists the profiles as JSON.")]
  ) { invocation in
    let described = [
      "store=\(invocation[store])", "quiet=\(invocation[quiet])", "json=\(invocation[json])",
      "order=\(invocation[order])", "limit=\(invocation[limit].map(String.init) ?? "none")",
      "labels=\(invocation[label])",
    ]
    try invocation.console.print(described.joined(separator: " "))
    return .ok
  }

  static let profile = Argument.required("profile", .string, help: "Which one.")
  static let records = Argument.repeated("record", .string, help: "Which of its records.")
  static let show = Command(
    "show", summary: "Shows one profile.", parameters: [profile, records]
  ) { invocation in
    try invocation.console.print("\(invocation[profile]) \(invocation[records])")
    return .ok
  }

  static let depth = Argument.optional(
    "depth", .integer(in: -5...5), help: "How deep to look.")
  static let check = Command(
    "check", summary: "Checks a store.", parameters: [depth]
  ) { invocation in
    invocation[depth].map { $0 > 0 } ?? true ? .ok : .checkFailed
  }

  static let root = Command(
    "sample", summary: "Looks at a store.", parameters: [store, quiet],
    subcommands: [list, show, check])
  static let tool = Tool(root, version: "1.2.3")
}

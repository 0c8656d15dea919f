/// A command as a value: its name, what it accepts, and what it does.
///
/// A command either does something, or has subcommands, or both: then it does its own work when no
/// subcommand is named. Options and flags of a command are understood by its subcommands too,
/// before and after the subcommand's name.
public struct Command: Sendable {
  /// What a command does. It is given its values and the console, and answers how it went; an error
  /// is translated by the ``Tool``.
  public typealias Action = @Sendable (Invocation) async throws -> ExitCode

  /// A command line for the help text.
  public struct Example: Hashable, Sendable {
    let line: String
    let explanation: String

    /// - Parameters:
    ///   - line: the whole command line, beginning with the tool's name.
    ///   - explanation: a sentence that says what it does.
    public init(_ line: String, _ explanation: String) {
      self.line = line
      self.explanation = explanation
    }
  }

  /// The word that calls it.
  public let name: String
  let summary: String
  let discussion: String
  let parameters: [any Parameter]
  let examples: [Example]
  let subcommands: [Command]
  let action: Action?

  /// Declares a command that does something.
  ///
  /// - Parameters:
  ///   - name: the word that calls it, written as an option's name is.
  ///   - summary: one sentence.
  ///   - discussion: what a person must know beyond the summary; paragraphs are separated by an
  ///     empty line.
  ///   - parameters: what it accepts. Arguments are read in this order.
  public init(
    _ name: String, summary: String, discussion: String = "", parameters: [any Parameter] = [],
    examples: [Example] = [], action: @escaping Action
  ) {
    self.init(
      name, summary: summary, discussion: discussion, parameters: parameters, examples: examples,
      subcommands: [], action: action)
  }

  /// Declares a command with subcommands.
  ///
  /// - Parameters:
  ///   - parameters: flags and options, for all its subcommands; no arguments.
  ///   - action: what it does when no subcommand is named; with `nil` it then shows its help.
  public init(
    _ name: String, summary: String, discussion: String = "", parameters: [any Parameter] = [],
    examples: [Example] = [], subcommands: [Command], action: Action? = nil
  ) {
    self.name = name
    self.summary = summary
    self.discussion = discussion
    self.parameters = parameters
    self.examples = examples
    self.subcommands = subcommands
    self.action = action
  }

  func subcommand(named word: String) -> Command? {
    subcommands.first { $0.name == word }
  }

  var declarations: [ParameterDeclaration] {
    parameters.map(\.declaration)
  }
}

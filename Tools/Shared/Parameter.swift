/// Something that a command accepts: a ``Flag``, an ``Option`` or an ``Argument``.
///
/// Parser and help read the same declaration, so that neither can know something that the other
/// doesn't. Don't conform further types: the parser knows these three.
public protocol Parameter<Value>: Sendable {
  /// What a command gets for it: see ``Invocation``.
  associatedtype Value: Sendable
  /// Names, help and how often it may occur.
  var declaration: ParameterDeclaration { get }
  /// The value for the texts that were given for it, in their order; none if it did not occur.
  ///
  /// Throws ``UsageError`` for a text that is not of the expected form.
  func value(of texts: [String]) throws(UsageError) -> Value
}

/// The part of a ``Parameter`` that does not depend on the type of its value.
public struct ParameterDeclaration: Hashable, Sendable {
  enum Kind: Hashable, Sendable {
    case flag
    case option(valueName: String)
    case argument
  }

  enum Occurrence: Hashable, Sendable {
    case optional, required, repeated
  }

  let kind: Kind
  let name: String
  let short: Character?
  let occurrence: Occurrence
  let help: String
  let defaultText: String?

  /// How a person writes it: `--store <path>`, `--json` or `<profile>`.
  public var spelling: String {
    switch kind {
    case .flag: "--\(name)"
    case .option(let valueName): "--\(name) <\(valueName)>"
    case .argument: "<\(name)>"
    }
  }

  /// Within one command no two parameters share it, which `Command.problems()` checks.
  var key: String {
    isArgument ? "<\(name)>" : "--\(name)"
  }

  var isArgument: Bool {
    kind == .argument
  }

  var takesValue: Bool {
    switch kind {
    case .flag: false
    case .option, .argument: true
    }
  }
}

/// A value by its place: `profilectl show PROFILE`.
///
/// Arguments are read in the order of a command's parameters. A text that begins with `-` is
/// written after `--`.
public struct Argument<Value: Sendable>: Parameter {
  /// Name, help and how often it may occur.
  public let declaration: ParameterDeclaration
  private let convert: @Sendable ([String]) throws(UsageError) -> Value

  private init(
    _ name: String, _ occurrence: ParameterDeclaration.Occurrence, help: String,
    convert: @escaping @Sendable (ParameterDeclaration, [String]) throws(UsageError) -> Value
  ) {
    let declaration = ParameterDeclaration(
      kind: .argument, name: name, short: nil, occurrence: occurrence, help: help,
      defaultText: nil)
    self.declaration = declaration
    self.convert = { (texts) throws(UsageError) in try convert(declaration, texts) }
  }

  /// The value for the texts that were given.
  public func value(of texts: [String]) throws(UsageError) -> Value {
    try convert(texts)
  }

  /// An argument that must be given.
  ///
  /// - Parameter name: what help calls it, without brackets, as an option's name is written.
  public static func required(
    _ name: String, _ format: ValueFormat<Value>, help: String
  ) -> Argument {
    Argument(name, .required, help: help) { (declaration, texts) throws(UsageError) in
      guard let text = texts.first else { throw declaration.missing }
      return try declaration.value(of: text, as: format)
    }
  }

  /// An argument that may be left out, which gives `nil`. It stands after all required ones.
  public static func optional<Wrapped: Sendable>(
    _ name: String, _ format: ValueFormat<Wrapped>, help: String
  ) -> Argument where Value == Wrapped? {
    Argument(name, .optional, help: help) { (declaration, texts) throws(UsageError) in
      guard let text = texts.first else { return nil }
      return try declaration.value(of: text, as: format)
    }
  }

  /// All arguments that remain, also none. It stands last.
  public static func repeated<Element: Sendable>(
    _ name: String, _ format: ValueFormat<Element>, help: String
  ) -> Argument where Value == [Element] {
    Argument(name, .repeated, help: help) { (declaration, texts) throws(UsageError) in
      try declaration.values(of: texts, as: format)
    }
  }
}

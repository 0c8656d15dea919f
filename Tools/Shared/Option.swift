/// A named value: `--store DIR`, `--store=DIR`, `-s DIR`, `-sDIR`.
///
/// Only a ``repeated(_:short:_:help:)`` option may be given more than once; for the others a second
/// one is refused, since nobody can know which one was meant.
public struct Option<Value: Sendable>: Parameter {
  /// Names, help and how often it may occur.
  public let declaration: ParameterDeclaration
  private let convert: @Sendable ([String]) throws(UsageError) -> Value

  private init(
    _ name: String, _ short: Character?, valueName: String,
    _ occurrence: ParameterDeclaration.Occurrence, help: String, defaultText: String? = nil,
    convert: @escaping @Sendable (ParameterDeclaration, [String]) throws(UsageError) -> Value
  ) {
    let declaration = ParameterDeclaration(
      kind: .option(valueName: valueName), name: name, short: short, occurrence: occurrence,
      help: help, defaultText: defaultText)
    self.declaration = declaration
    self.convert = { (texts) throws(UsageError) in try convert(declaration, texts) }
  }

  /// The value for the texts that were given.
  public func value(of texts: [String]) throws(UsageError) -> Value {
    try convert(texts)
  }

  /// An option that must be given.
  ///
  /// - Parameters:
  ///   - name: the long name without dashes, of ASCII lowercase letters, digits and inner dashes.
  ///   - short: an ASCII letter for the short form.
  public static func required(
    _ name: String, short: Character? = nil, _ format: ValueFormat<Value>, help: String
  ) -> Option {
    Option(name, short, valueName: format.valueName, .required, help: help) {
      (declaration, texts) throws(UsageError) in
      guard let text = texts.first else { throw declaration.missing }
      return try declaration.value(of: text, as: format)
    }
  }

  /// An option with a value of its own for when it is not given; help shows it.
  public static func defaulted(
    _ name: String, short: Character? = nil, _ format: ValueFormat<Value>, to value: Value,
    help: String
  ) -> Option {
    Option(
      name, short, valueName: format.valueName, .optional, help: help,
      defaultText: format.write(value)
    ) { (declaration, texts) throws(UsageError) in
      guard let text = texts.first else { return value }
      return try declaration.value(of: text, as: format)
    }
  }

  /// An option that may be left out, which gives `nil`.
  public static func optional<Wrapped: Sendable>(
    _ name: String, short: Character? = nil, _ format: ValueFormat<Wrapped>, help: String
  ) -> Option where Value == Wrapped? {
    Option(name, short, valueName: format.valueName, .optional, help: help) {
      (declaration, texts) throws(UsageError) in
      guard let text = texts.first else { return nil }
      return try declaration.value(of: text, as: format)
    }
  }

  /// An option that may be given any number of times; the values are in the order given.
  public static func repeated<Element: Sendable>(
    _ name: String, short: Character? = nil, _ format: ValueFormat<Element>, help: String
  ) -> Option where Value == [Element] {
    Option(name, short, valueName: format.valueName, .repeated, help: help) {
      (declaration, texts) throws(UsageError) in
      try declaration.values(of: texts, as: format)
    }
  }
}

extension ParameterDeclaration {
  var missing: UsageError {
    UsageError(
      isArgument ? "missing argument '\(spelling)'" : "missing option '\(spelling)'")
  }

  func value<Value>(
    of text: String, as format: ValueFormat<Value>
  ) throws(UsageError) -> Value {
    guard let value = format.read(text) else {
      let given = TerminalText.quoted(text)
      throw UsageError("\(given) is no value for '\(spelling)': expected \(format.expectation)")
    }
    return value
  }

  func values<Value>(
    of texts: [String], as format: ValueFormat<Value>
  ) throws(UsageError) -> [Value] {
    var values: [Value] = []
    for text in texts { values.append(try value(of: text, as: format)) }
    return values
  }
}

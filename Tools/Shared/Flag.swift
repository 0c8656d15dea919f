/// A switch without a value: `--json`, `-q`. Its value is whether it was given.
public struct Flag: Parameter {
  /// Names and help.
  public let declaration: ParameterDeclaration

  /// Declares a switch.
  ///
  /// - Parameters:
  ///   - name: the long name without dashes, of ASCII lowercase letters, digits and inner dashes.
  ///   - short: an ASCII letter for the short form.
  ///   - help: one or more sentences.
  public init(_ name: String, short: Character? = nil, help: String) {
    declaration = ParameterDeclaration(
      kind: .flag, name: name, short: short, occurrence: .optional, help: help, defaultText: nil)
  }

  /// Whether it occurred.
  public func value(of texts: [String]) -> Bool {
    !texts.isEmpty
  }
}

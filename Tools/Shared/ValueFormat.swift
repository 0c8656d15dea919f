/// How the text of an option or argument becomes a value, and how help names such a value.
public struct ValueFormat<Value: Sendable>: Sendable {
  /// What the value is called in help and errors, without brackets: `path`, `count`.
  public let valueName: String
  let expectation: String
  let read: @Sendable (String) -> Value?
  let write: @Sendable (Value) -> String

  /// Makes a format.
  ///
  /// - Parameters:
  ///   - valueName: what the value is called in help: `<valueName>`.
  ///   - expectation: completes "expected ...", for the error that a bad value gets.
  ///   - write: the text that `read` turns into this value, for showing a default.
  ///   - read: the value, or `nil` if the text is not one.
  public init(
    _ valueName: String, expectation: String,
    write: @escaping @Sendable (Value) -> String,
    read: @escaping @Sendable (String) -> Value?
  ) {
    self.valueName = valueName
    self.expectation = expectation
    self.read = read
    self.write = write
  }

  /// The same format under a name that says more: `.path.named("store")`.
  public func named(_ valueName: String) -> ValueFormat {
    ValueFormat(valueName, expectation: expectation, write: write, read: read)
  }
}

extension ValueFormat where Value == String {
  /// Any text, the empty one too, byte for byte as it was given.
  public static var string: ValueFormat {
    ValueFormat("text", expectation: "text", write: { $0 }, read: { $0 })
  }

  /// The path of a file or directory: any text that is not empty. Nothing is expanded or resolved.
  public static var path: ValueFormat {
    ValueFormat(
      "path", expectation: "a path, not an empty text",
      write: { $0 }, read: { $0.isEmpty ? nil : $0 })
  }
}

extension ValueFormat where Value == Int {
  /// A decimal whole number within `range`, with no sign but a leading `-`, no group separators.
  public static func integer(in range: ClosedRange<Int>) -> ValueFormat {
    ValueFormat(
      "count",
      expectation: "a whole number from \(range.lowerBound) to \(range.upperBound)",
      write: { String($0) },
      read: { text in
        // Int("+5") would be 5; a sign that means nothing is more likely a slip.
        guard !text.hasPrefix("+"), let number = Int(text), range.contains(number) else {
          return nil
        }
        return number
      })
  }
}

extension ValueFormat where Value == Duration {
  /// A length of time as a whole number and a unit: `500ms`, `30s`, `10m`, `2h`, `7d`.
  ///
  /// A number with no unit is refused, since it would mean seconds to one person and
  /// milliseconds to another.
  public static var duration: ValueFormat {
    ValueFormat(
      "duration",
      expectation: "a whole number with a unit, such as 500ms, 30s, 10m, 2h or 7d",
      write: durationText, read: durationValue)
  }
}

extension ValueFormat where Value: CaseIterable & RawRepresentable<String> {
  /// One of the raw values of an enumeration; help lists them as `<a|b|c>`.
  public static var choice: ValueFormat {
    let names = Value.allCases.map(\.rawValue)
    return ValueFormat(
      names.joined(separator: "|"),
      expectation: "one of " + names.map { "'\($0)'" }.joined(separator: ", "),
      write: { $0.rawValue }, read: { Value(rawValue: $0) })
  }
}

private let durationUnits: [(suffix: String, milliseconds: Int64)] = [
  ("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000),
]

private func durationValue(_ text: String) -> Duration? {
  let digits = text.prefix { $0.isASCII && $0.isNumber }
  let suffix = text.dropFirst(digits.count)
  guard
    let number = Int64(digits),
    let unit = durationUnits.first(where: { $0.suffix == suffix })
  else { return nil }
  let (milliseconds, overflow) = number.multipliedReportingOverflow(by: unit.milliseconds)
  return overflow ? nil : .milliseconds(milliseconds)
}

private func durationText(_ duration: Duration) -> String {
  let (seconds, attoseconds) = duration.components
  let milliseconds = seconds * 1000 + attoseconds / 1_000_000_000_000_000
  let unit = durationUnits.last { milliseconds % $0.milliseconds == 0 && milliseconds != 0 }
  guard let unit else { return "\(milliseconds)ms" }
  return "\(milliseconds / unit.milliseconds)\(unit.suffix)"
}

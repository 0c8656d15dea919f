/// How a word is shown on a terminal that has colors. Never the only bearer of a meaning: the words
/// say it too.
public enum TextStyle: Sendable {
  /// For headings.
  case bold
  /// For what is less important.
  case dim
  /// For what is as it should be.
  case good
  /// For what deserves a look.
  case warning
  /// For what is wrong.
  case bad

  /// The parameter of ECMA-48 "Select Graphic Rendition".
  var rendition: String {
    switch self {
    case .bold: "1"
    case .dim: "2"
    case .good: "32"
    case .warning: "33"
    case .bad: "31"
    }
  }

  func applied(to text: String) -> String {
    "\u{1B}[\(rendition)m\(text)\u{1B}[0m"
  }
}

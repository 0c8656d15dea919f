/// Text as a terminal shows it: what is safe to print, and how many columns it takes.
///
/// Names and IDs come from other people. Printed as they are, an escape sequence in one could
/// change what the person believes to see, or a newline could forge a row.
public enum TerminalText {
  /// The text with everything that a terminal would act upon written out, as in `\u{1B}`: control
  /// characters, line and paragraph separators, and the marks that turn the writing direction.
  /// A backslash stays, so the result is for reading, not for turning back.
  public static func escaped(_ text: String) -> String {
    guard text.unicodeScalars.contains(where: isUnsafe) else { return text }
    var result = ""
    for scalar in text.unicodeScalars {
      if isUnsafe(scalar) {
        result += "\\u{\(String(scalar.value, radix: 16, uppercase: true))}"
      } else {
        result.unicodeScalars.append(scalar)
      }
    }
    return result
  }

  /// The columns that the text takes in a terminal: two for East Asian wide characters and emoji,
  /// none for combining marks. An estimate where terminals differ, such as joined emoji.
  public static func width(of text: String) -> Int {
    text.reduce(0) { $0 + width(of: $1) }
  }

  /// The escaped text in single quotes, cut at 60 columns, for error messages.
  static func quoted(_ text: String) -> String {
    "'\(truncated(escaped(text), to: 60))'"
  }

  /// The text, or as much of it as fits before an ellipsis.
  static func truncated(_ text: String, to columns: Int) -> String {
    precondition(columns >= 1, "a column is at least one wide: it has to hold the ellipsis")
    guard width(of: text) > columns else { return text }
    var result = ""
    var used = 0
    for character in text {
      used += width(of: character)
      guard used < columns else { break }
      result.append(character)
    }
    return result + "…"
  }

  /// Lines of at most `columns`, broken at spaces; a longer word gets a line of its own. Newlines
  /// in the text stay, and an empty text is one empty line.
  static func wrapped(_ text: String, to columns: Int) -> [String] {
    text.split(separator: "\n", omittingEmptySubsequences: false).flatMap { paragraph in
      var lines: [String] = []
      var line = ""
      for word in paragraph.split(separator: " ").map(String.init) {
        if line.isEmpty {
          line = word
        } else if width(of: line) + 1 + width(of: word) <= columns {
          line += " " + word
        } else {
          lines.append(line)
          line = word
        }
      }
      return lines + [line]
    }
  }

  private static func isUnsafe(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.properties.generalCategory {
    case .control, .lineSeparator, .paragraphSeparator, .surrogate: true
    case .format: isDirectional(scalar)
    default: false
    }
  }

  // The zero-width joiner is a format character too, but it is part of many emoji and scripts.
  private static func isDirectional(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0x061C, 0x200E...0x200F, 0x202A...0x202E, 0x2066...0x2069: true
    default: false
    }
  }

  private static func width(of character: Character) -> Int {
    guard let first = character.unicodeScalars.first else { return 0 }
    switch first.properties.generalCategory {
    case .nonspacingMark, .enclosingMark, .format, .control: return 0
    default: break
    }
    let isEmoji =
      first.properties.isEmojiPresentation
      || character.unicodeScalars.contains { $0.value == 0xFE0F }
    return isEmoji || isWide(first) ? 2 : 1
  }

  // Unicode's EastAsianWidth.txt, classes W and F, in ranges coarse enough to read.
  private static func isWide(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0x1100...0x115F, 0x2E80...0x303E, 0x3041...0x4DBF, 0x4E00...0xA4CF, 0xA960...0xA97C,
      0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F, 0xFF01...0xFF60, 0xFFE0...0xFFE6,
      0x16FE0...0x18DFF, 0x1B000...0x1B2FF, 0x20000...0x3FFFD:
      true
    default:
      false
    }
  }
}

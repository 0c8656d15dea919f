/// Rows in aligned columns that fit the terminal.
///
/// Every cell is escaped as by ``TerminalText/escaped(_:)``, so that a row is always one line.
public struct TextTable: Sendable {
  /// One column: its title, and how its cells are laid out.
  public struct Column: Sendable {
    /// Which edge the cells keep to.
    public enum Alignment: Sendable {
      /// For words.
      case leading
      /// For numbers.
      case trailing
    }

    let title: String
    let alignment: Alignment
    let isShrinkable: Bool

    /// - Parameters:
    ///   - alignment: which edge the cells keep to.
    ///   - isShrinkable: whether cells may be cut to make the table fit. Leave it off for what a
    ///     person copies or counts.
    public init(_ title: String, _ alignment: Alignment = .leading, isShrinkable: Bool = false) {
      self.title = title
      self.alignment = alignment
      self.isShrinkable = isShrinkable
    }
  }

  private let columns: [Column]
  private var rows: [[String]] = []
  private static let gap = "  "
  private static let shrunkWidthMin = 8

  /// Makes a table without rows.
  ///
  /// - Precondition: there is at least one column.
  public init(_ columns: [Column]) {
    precondition(!columns.isEmpty, "a table needs at least one column")
    self.columns = columns
  }

  /// Whether no row was appended.
  public var isEmpty: Bool { rows.isEmpty }

  /// Appends a row.
  ///
  /// - Precondition: there is one cell for each column.
  public mutating func append(_ cells: [String]) {
    precondition(
      cells.count == columns.count,
      "the row has \(cells.count) cells but the table has \(columns.count) columns")
    rows.append(cells.map(TerminalText.escaped))
  }

  /// The titles and rows, each a line without its newline.
  ///
  /// - Parameter width: the columns of the terminal, ``Console/width``. The widest shrinkable
  ///   columns are cut until the table fits or each is at 8; if it still doesn't fit, lines are
  ///   longer than the terminal. `nil`, for a pipe or file: nothing is cut.
  public func lines(width: Int? = nil) -> [String] {
    let table = [columns.map(\.title)] + rows
    let widths = columnWidths(of: table, fitting: width)
    return table.map { line($0, widths) }
  }

  private func columnWidths(of table: [[String]], fitting width: Int?) -> [Int] {
    var widths = columns.indices.map { column in
      table.map { TerminalText.width(of: $0[column]) }.max() ?? 0
    }
    guard let width else { return widths }
    var excess = widths.reduce(0, +) + Self.gap.count * (widths.count - 1) - width
    while excess > 0 {
      let shrinkable = columns.indices.filter {
        columns[$0].isShrinkable && widths[$0] > Self.shrunkWidthMin
      }
      guard let widest = shrinkable.max(by: { widths[$0] < widths[$1] }) else { break }
      widths[widest] -= 1
      excess -= 1
    }
    return widths
  }

  private func line(_ cells: [String], _ widths: [Int]) -> String {
    let padded = columns.indices.map { column in
      let cell = TerminalText.truncated(cells[column], to: max(widths[column], 1))
      let space = String(
        repeating: " ", count: max(widths[column] - TerminalText.width(of: cell), 0))
      return columns[column].alignment == .leading ? cell + space : space + cell
    }
    let line = padded.joined(separator: Self.gap)
    // No invisible tail after the last column; a person who copies a line gets what is seen.
    let tail = line.reversed().prefix { $0 == " " }.count
    return String(line.dropLast(tail))
  }
}

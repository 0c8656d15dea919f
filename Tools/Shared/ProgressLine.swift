/// One state of a progress bar, as text: a pure function of numbers and width.
struct ProgressLine: Hashable {
  var label: String
  var unit: String
  var done = 0
  /// How much there is in all; `nil` if nobody knows.
  var total: Int?
  var elapsed = Duration.zero

  /// The line in at most `width` columns. Where it is narrow the bar goes first, then the rate,
  /// then the count; the label is cut at last.
  func text(width: Int) -> String {
    let full = [label, bar, percentage, amount, rate]
    let shorter = [
      [label, percentage, amount, rate], [label, percentage, amount], [label, share],
    ]
    let candidates = ([full] + shorter).map { parts in
      parts.compactMap { $0 }.joined(separator: "  ")
    }
    return candidates.first { TerminalText.width(of: $0) <= width }
      ?? TerminalText.truncated(label, to: max(width, 1))
  }

  /// The line that stays when all is done.
  var finalText: String {
    let time = "\(Quantity.count(done)) \(unit) in \(Quantity.duration(elapsed))"
    return "\(label): \(time) (\(Quantity.rate(done, over: elapsed)))"
  }

  private var fraction: Double? {
    guard let total, total > 0 else { return nil }
    return min(max(Double(done) / Double(total), 0), 1)
  }

  private var bar: String? {
    let barWidth = 24
    return fraction.map { fraction in
      let filled = Int(fraction * Double(barWidth))
      return "[" + String(repeating: "#", count: filled)
        + String(repeating: "-", count: barWidth - filled) + "]"
    }
  }

  // Rounded down: 100 % is said when it is so.
  private var percentage: String? {
    fraction.map { fraction in
      let number = String(Int(fraction * 100))
      return String(repeating: " ", count: 3 - number.count) + number + " %"
    }
  }

  private var share: String {
    percentage ?? Quantity.count(done)
  }

  private var amount: String {
    let count = Quantity.count(done)
    return total.map { "\(count) of \(Quantity.count($0)) \(unit)" } ?? "\(count) \(unit)"
  }

  private var rate: String? {
    done > 0 ? Quantity.rate(done, over: elapsed) : nil
  }
}

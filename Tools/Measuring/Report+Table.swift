package import ToolSupport

extension Report {
  /// The rows for people.
  package func table() -> TextTable {
    var table = TextTable([
      .init("workload"), .init("metric"), .init("engine"), .init("median", .trailing),
      .init("min", .trailing), .init("max", .trailing), .init("unit"),
      .init("rounds", .trailing), .init("to C", .trailing), .init("bars"),
    ])
    for row in results {
      table.append([
        row.workload.rawValue, row.metric.name, row.engine.rawValue, Self.text(row.summary.median),
        Self.text(row.summary.min), Self.text(row.summary.max), row.metric.unit,
        String(row.summary.count), row.ratioToC.map { Self.decimal($0, places: 3) } ?? "",
        row.verdicts.map(Self.text).joined(separator: "; "),
      ])
    }
    return table
  }

  /// Sentences about numbers beside which a peer's stands that this run does not measure.
  package var notes: [String] {
    results.compactMap { row in
      guard row.workload == .managedApply, row.metric == .applyShuffled, row.engine == .holdfast,
        let ratio = row.ratioToC
      else { return nil }
      // Measured once beside C on another machine: the same records, keys shuffled.
      return "R2 \(row.metric.name): \(Self.decimal(ratio, places: 2)) times C; LevelDB as a plain "
        + "store of keys and values has reached 4.15 times C"
    }
  }

  /// What the bars say in one sentence.
  package var conclusion: String {
    let judged = results.filter { $0.holds != nil }
    let missed = misses.map { "\($0.workload.rawValue) \($0.metric.name)" }
    if judged.isEmpty { return "no bar was judged" }
    return missed.isEmpty
      ? "all bars hold (\(judged.count) rows)"
      : "\(missed.count) of \(judged.count) rows with bars do not hold: "
        + missed.joined(separator: "; ")
  }

  private static func text(_ verdict: Row.Verdict) -> String {
    let outcome = verdict.holds ? "holds" : "DOES NOT HOLD"
    let value = decimal(verdict.value, places: 3)
    let limit = decimal(verdict.bar.limit, places: 2)
    switch verdict.bar.measure {
    case .atLeast: return "at least \(limit): \(outcome)"
    case .atMost: return "at most \(limit): \(outcome)"
    case .within: return "at most \(text(verdict.bar.limit)): \(outcome)"
    case .noMore(let engine, _): return "no more than \(engine.rawValue): \(value), \(outcome)"
    case .ratio(let engine, let metric):
      let quartile =
        verdict.bar.isNearOne ? ", upper quartile \(decimal(verdict.upperQuartile, places: 3))" : ""
      return "\(limit) of \(engine.rawValue) (\(metric.name)): "
        + "\(value)\(quartile) of \(verdict.pairs), \(outcome)"
    }
  }

  private static func text(_ number: Double) -> String {
    number >= 100 || number == number.rounded()
      ? Quantity.count(Int(number.rounded())) : decimal(number, places: 4)
  }

  /// A number that is not negative.
  static func decimal(_ number: Double, places: Int) -> String {
    var scale = 1
    for _ in 0..<places { scale *= 10 }
    let scaled = Int((number * Double(scale)).rounded())
    guard places > 0 else { return String(scaled) }
    let fraction = String(scaled % scale)
    return "\(scaled / scale)." + String(repeating: "0", count: places - fraction.count) + fraction
  }
}

/// The ratios to C as a drawing, in the words of gnuplot.
package enum Chart {
  /// The commands that draw an SVG file; the data is within them.
  package static func commands(for report: Report, file: String) -> String {
    var groups: [(name: String, ratios: [Engine: Double])] = []
    for row in report.results {
      guard let ratio = row.ratioToC, ratio.isFinite, ratio > 0 else { continue }
      let name = "\(row.workload.rawValue) \(row.metric.name)"
      if groups.last?.name != name { groups.append((name, [:])) }
      groups[groups.count - 1].ratios[row.engine] = ratio
    }
    let engines = Engine.allCases.filter { engine in
      groups.contains { $0.ratios[engine] != nil }
    }
    var lines = ["$ratios << END"]
    lines.append((["metric"] + engines.map(\.rawValue)).map(cell).joined(separator: " "))
    for group in groups {
      let cells = engines.map { engine in
        group.ratios[engine].map { Report.decimal($0, places: 4) } ?? "NaN"
      }
      lines.append(([cell(group.name)] + cells).joined(separator: " "))
    }
    lines += [
      "END",
      "set terminal svg size \(280 + 64 * max(groups.count, 4)),640 font 'sans-serif,12'",
      "set output \(quoted(file))",
      "set title 'Speed relative to C on liblmdb, medians (higher is faster)' noenhanced",
      "set style data histograms",
      "set style histogram clustered gap 1",
      "set style fill solid 0.9 noborder",
      "set logscale y",
      "set yrange [0.05:*]",
      "set grid ytics",
      "set key outside top right noenhanced",
      "set xtics rotate by -40 noenhanced font ',10'",
      "set bmargin 12",
      "set arrow from graph 0, first 1 to graph 1, first 1 nohead lw 1 dt 2",
    ]
    let plots = engines.indices.map { index in
      "$ratios using \(index + 2)\(index == 0 ? ":xtic(1)" : "") title columnheader(\(index + 2))"
    }
    lines.append("plot " + plots.joined(separator: ", "))
    return lines.joined(separator: "\n") + "\n"
  }

  /// A text among data; none of ours has a double quote.
  private static func cell(_ text: String) -> String { "\"\(text)\"" }

  /// A text of gnuplot's: within single quotes only a single quote is written twice.
  private static func quoted(_ text: String) -> String {
    "'" + text.replacing("'", with: "''") + "'"
  }
}

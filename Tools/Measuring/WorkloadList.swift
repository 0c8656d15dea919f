package import ToolSupport

extension ValueFormat where Value == [Workload] {
  /// Workloads by name, separated by commas; each once, in the order of the table.
  package static var workloads: ValueFormat {
    let names = Workload.allCases.map(\.rawValue)
    return ValueFormat(
      "workloads", expectation: "some of \(names.joined(separator: ",")), separated by commas",
      write: { $0.map(\.rawValue).joined(separator: ",") },
      read: { text in
        var chosen: Set<Workload> = []
        for name in text.split(separator: ",", omittingEmptySubsequences: false) {
          guard
            let workload = Workload.allCases.first(where: {
              $0.rawValue.lowercased() == name.lowercased()
            })
          else { return nil }
          chosen.insert(workload)
        }
        return Workload.allCases.filter(chosen.contains)
      })
  }
}

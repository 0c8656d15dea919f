import Foundation
import Measuring
import Testing
import ToolSupport

@Suite("A report of what was measured")
struct ReportTests {
  private func rows(
    _ workload: Workload, _ values: [(Engine, Metric, [Double])]
  ) -> [Row] {
    var samples = Samples()
    for (engine, metric, numbers) in values {
      for (round, number) in numbers.enumerated() {
        samples.add(number, round: round, to: Samples.Key(workload, engine, metric))
      }
    }
    return Report.rows(of: samples)
  }

  private func row(_ rows: [Row], _ engine: Engine) throws -> Row {
    try #require(rows.first { $0.engine == engine })
  }

  @Test("has ratios of speed over speed: higher is faster")
  func speed() throws {
    let rows = rows(.get, [(.c, .getsAlone, [100]), (.lmdb, .getsAlone, [80])])
    #expect(try row(rows, .c).ratioToC == 1)
    #expect(try row(rows, .lmdb).ratioToC == 0.8)
  }

  @Test("turns the ratio of a cost round: less memory is better")
  func cost() throws {
    let rows = rows(
      .manyStores,
      [(.c, .resident, [100]), (.lmdb, .resident, [105]), (.sqliteFull, .resident, [200])])
    #expect(try row(rows, .sqliteFull).ratioToC == 0.5)
    #expect(try row(rows, .lmdb).holds == true)
    let worse = self.rows(
      .manyStores,
      [(.c, .resident, [100]), (.lmdb, .resident, [111]), (.sqliteFull, .resident, [200])])
    #expect(try row(worse, .lmdb).holds == false)
  }

  @Test("compares the numbers of the same round, and takes the median of that")
  func pairs() throws {
    // The machine was three times as slow in the second round and twice in the third.
    let rows = rows(
      .get, [(.c, .getsAlone, [300, 100, 150]), (.lmdb, .getsAlone, [300, 110, 120])])
    #expect(try row(rows, .lmdb).ratioToC == 1)
    #expect(try row(rows, .lmdb).summary.median == 120)
  }

  @Test("compares rounds that both have only")
  func furtherRounds() throws {
    let rows = rows(
      .get,
      [
        (.c, .getsAlone, [100, 1, 1]), (.lmdb, .getsAlone, [90, 1, 1]),
        (.sqliteFull, .getsAlone, [10]),
      ])
    let verdicts = try row(rows, .lmdb).verdicts
    #expect(verdicts.map(\.pairs) == [3, 1])
    #expect(verdicts.map(\.value) == [1, 9])
  }

  @Test("judges a bar near 1 by the upper quartile and another by the median")
  func judging() throws {
    let c = Array(repeating: 100.0, count: 5)
    let rows = rows(
      .get,
      [
        (.c, .getsTogether, c), (.lmdb, .getsTogether, [80, 80, 80, 96, 99]),
        (.sqliteFull, .getsTogether, [50, 50, 50, 1, 1]),
      ])
    let verdicts = try row(rows, .lmdb).verdicts
    #expect(verdicts[0].value == 0.8)
    #expect(verdicts[0].upperQuartile == 0.96)
    #expect(verdicts[0].holds)
    #expect(verdicts[1].value == 1.6)
    #expect(!verdicts[1].holds)
    #expect(try row(rows, .lmdb).holds == false)
  }

  @Test("lets no single allocation pass")
  func allocations() throws {
    let clean = rows(.get, [(.lmdb, .aloneAllocations, [0, 0, 0])])
    #expect(try row(clean, .lmdb).holds == true)
    let once = rows(.get, [(.lmdb, .aloneAllocations, [0, 0, 0.001])])
    #expect(try row(once, .lmdb).holds == false)
    #expect(try row(once, .lmdb).ratioToC == nil)
  }

  @Test("judges a time by its median, and a count beside another's in every round")
  func limits() throws {
    func row(_ metric: Metric, _ c: [Double], _ holdfast: [Double]) throws -> Row {
      try self.row(
        rows(.enqueue, [(.c, metric, c), (.holdfast, metric, holdfast)]), .holdfast)
    }
    let bytes = Metric.enqueueBytes(deep: true)
    #expect(try row(bytes, [10, 10, 20], [10, 9, 20]).holds == true)
    #expect(try row(bytes, [10, 10, 20], [10, 11, 1]).holds == false)
    // Nothing is no more than nothing, and anything is.
    #expect(try row(bytes, [0], [0]).holds == true)
    #expect(try row(bytes, [0], [1]).holds == false)
    // Without the other's number there is nothing to judge.
    #expect(try self.row(rows(.enqueue, [(.holdfast, bytes, [1])]), .holdfast).holds == nil)

    let open = rows(.switching, [(.holdfast, .switchOpen, [4, 5, 900])])
    #expect(try self.row(open, .holdfast).holds == true)
    let slow = rows(.switching, [(.holdfast, .switchOpen, [4, 5.1, 5.2])])
    #expect(try self.row(slow, .holdfast).holds == false)
  }

  @Test("has the rows of a metric together, C first")
  func order() {
    let rows = rows(
      .get,
      [
        (.lmdb, .getsAlone, [1]), (.c, .getsTogether, [1]), (.c, .getsAlone, [1]),
        (.sqliteFull, .getsTogether, [1]), (.lmdb, .getsTogether, [1]),
      ])
    #expect(
      rows.map(\.metric) == [.getsAlone, .getsAlone] + Array(repeating: .getsTogether, count: 3))
    #expect(rows.map(\.engine) == [.c, .lmdb, .c, .lmdb, .sqliteFull])
  }

  @Test("judges nothing that was not measured")
  func unmeasured() throws {
    let rows = rows(.get, [(.lmdb, .getsAlone, [1])])
    #expect(try row(rows, .lmdb).holds == nil)
    #expect(try row(rows, .lmdb).ratioToC == nil)
  }

  @Test("compares a row that C does not have with the one in its place")
  func base() throws {
    let rows = rows(
      .durableWrite, [(.c, .writes(callers: 1), [100]), (.lmdb, .oneTask, [90])])
    #expect(try row(rows, .lmdb).ratioToC == 0.9)
  }

  private func report(_ rows: [Row]) -> Report {
    Report(
      machine: .init(
        processor: "P", cores: 2, memoryByteCount: 3, system: "S", fileSystem: "F"),
      commit: "abc", versions: ["lmdb": "0.9"], records: 10, results: rows)
  }

  @Test("is one JSON object with the members that were promised")
  func json() throws {
    let rows = rows(
      .scan,
      [
        (.c, .plainScan, [100, 100]), (.lmdb, .plainScan, [100, 98]),
        (.lmdb, .scanAllocations, [0]),
      ])
    let text = try JSONText.encoded(report(rows))
    let object = try #require(
      try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
    #expect(Set(object.keys) == ["machine", "commit", "versions", "records", "results"])
    let results = try #require(object["results"] as? [[String: Any]])
    let always: Set = [
      "workload", "engine", "metric", "unit", "median", "min", "max", "rounds", "ratioToC",
    ]
    #expect(Set(results[0].keys) == always)
    #expect(Set(results[1].keys) == always.union(["bar", "bars", "holds"]))
    #expect(results[1]["workload"] as? String == "W2")
    #expect(results[1]["engine"] as? String == "lmdb")
    #expect(results[1]["ratioToC"] as? Double == 0.99)
    #expect(results[1]["bar"] as? Double == 0.95)
    #expect(results[1]["holds"] as? Bool == true)
    #expect(results[1]["rounds"] as? Int == 2)
    #expect(results[2]["ratioToC"] is NSNull)
  }

  @Test("says in the table and in a sentence what does not hold")
  func table() {
    let rows = rows(.get, [(.c, .getsAlone, [100]), (.lmdb, .getsAlone, [50])])
    let report = report(rows)
    #expect(
      report.table().lines().contains { $0.contains("0.500") && $0.contains("DOES NOT HOLD") })
    #expect(report.conclusion == "1 of 1 rows with bars do not hold: W3 1 per transaction")
  }

  @Test("says beside the shuffled pages how far another store is")
  func notes() {
    let shuffled = rows(
      .managedApply, [(.c, .applyShuffled, [100]), (.holdfast, .applyShuffled, [250])])
    #expect(report(shuffled).notes.count == 1)
    #expect(report(shuffled).notes[0].contains("2.50 times C; LevelDB"))
    #expect(report(rows(.get, [(.c, .getsAlone, [1])])).notes.isEmpty)
  }

  @Test("becomes a chart of the ratios, with a gap where there is none")
  func chart() {
    let rows = rows(
      .get,
      [
        (.c, .getsAlone, [100]), (.lmdb, .getsAlone, [50]), (.c, .getsTogether, [10]),
        (.lmdb, .aloneAllocations, [0]),
      ])
    let commands = Chart.commands(for: report(rows), file: "it's.svg")
    #expect(commands.contains("\"W3 1 per transaction\" 1.0000 0.5000\n"))
    #expect(commands.contains("\"W3 1,000 per transaction\" 1.0000 NaN\n"))
    #expect(!commands.contains("allocations"))
    #expect(commands.contains("set output 'it''s.svg'"))
  }
}

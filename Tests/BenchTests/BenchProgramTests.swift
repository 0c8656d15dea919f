import Foundation
import Testing

/// The program as the build made it, at a size that takes no time. Times are never judged here.
@Suite("The program bench")
struct BenchProgramTests {
  private struct Run {
    var exitCode: Int32
    var output: String
    var errors: String
  }

  /// Beside the tests themselves.
  private var executable: URL {
    get throws {
      let tests = Bundle.allBundles.map(\.bundleURL) + [Bundle.main.executableURL].compactMap { $0 }
      let candidates = tests.map {
        $0.resolvingSymlinksInPath().deletingLastPathComponent().appending(path: "bench")
      }
      return try #require(
        candidates.first { FileManager.default.isExecutableFile(atPath: $0.path) },
        "the program bench is not beside the tests: build it first")
    }
  }

  private func run(_ words: [String]) throws -> Run {
    let process = Process()
    process.executableURL = try executable
    process.arguments = words
    let output = Pipe()
    let errors = Pipe()
    process.standardOutput = output
    process.standardError = errors
    process.standardInput = FileHandle.nullDevice
    try process.run()
    let printed = try output.fileHandleForReading.readToEnd() ?? Data()
    let complained = try errors.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    return Run(
      exitCode: process.terminationStatus, output: String(decoding: printed, as: UTF8.self),
      errors: String(decoding: complained, as: UTF8.self))
  }

  private func withDirectory(_ body: (URL) throws -> Void) throws {
    let directory = FileManager.default.temporaryDirectory
      .appending(path: "bench-\(UUID().uuidString)", directoryHint: .isDirectory)
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    defer { #expect(throws: Never.self) { try FileManager.default.removeItem(at: directory) } }
    try body(directory)
  }

  @Test("measures every workload on every engine, and leaves no data behind")
  func everything() throws {
    try withDirectory { directory in
      let json = directory.appending(path: "results.json")
      let run = try run([
        "--rounds", "1", "--records", "1000", "--json", json.path, "--directory", directory.path,
      ])
      #expect(run.exitCode == 0, "\(run.errors)\(run.output)")
      let object = try #require(
        try JSONSerialization.jsonObject(with: Data(contentsOf: json)) as? [String: Any])
      let results = try #require(object["results"] as? [[String: Any]])
      for workload in ["W1", "W2", "W3", "W4", "W5", "W6"] {
        let engines = results.filter { $0["workload"] as? String == workload }
          .compactMap { $0["engine"] as? String }
        #expect(Set(engines) == ["c", "lmdb", "sqlite-full", "sqlite-normal"])
      }
      for workload in ["R1", "R2", "R3", "R4", "R5", "R6"] {
        let engines = results.filter { $0["workload"] as? String == workload }
          .compactMap { $0["engine"] as? String }
        #expect(Set(engines).isSuperset(of: ["c", "holdfast"]))
      }
      for result in results {
        #expect((result["median"] as? Double ?? -1) >= 0)
        #expect(result["rounds"] as? Int == 1)
      }
      #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path).count == 1)
    }
  }

  @Test("counts no allocation in the module's reads")
  func allocations() throws {
    try withDirectory { directory in
      let json = directory.appending(path: "results.json")
      let run = try run([
        "--only", "W2,W3", "--rounds", "1", "--records", "2000", "--json", json.path,
        "--directory", directory.path,
      ])
      #expect(run.exitCode == 0, "\(run.output)")
      let object = try #require(
        try JSONSerialization.jsonObject(with: Data(contentsOf: json)) as? [String: Any])
      let results = try #require(object["results"] as? [[String: Any]])
      #expect(Set(results.compactMap { $0["workload"] as? String }) == ["W2", "W3"])
      let counts = results.filter {
        $0["engine"] as? String == "lmdb" && ($0["metric"] as? String)?.hasPrefix("alloc") == true
      }
      #if os(Linux)
        #expect(counts.count == 4)
      #endif
      for count in counts {
        #expect(count["max"] as? Double == 0, "\(count)")
        #expect(count["holds"] as? Bool == true)
      }
    }
  }

  @Test(
    "counts one durable commit for each mutation of one caller, and no more writes than C makes")
  func commits() throws {
    try withDirectory { directory in
      let json = directory.appending(path: "results.json")
      let run = try run([
        "--only", "R4", "--rounds", "1", "--records", "1000", "--json", json.path,
        "--directory", directory.path,
      ])
      #expect(run.exitCode == 0, "\(run.errors)\(run.output)")
      let object = try #require(
        try JSONSerialization.jsonObject(with: Data(contentsOf: json)) as? [String: Any])
      let results = try #require(object["results"] as? [[String: Any]])
      func number(_ metric: String, _ engine: String) throws -> Double {
        let row = results.first {
          $0["metric"] as? String == metric && $0["engine"] as? String == engine
        }
        return try #require(row?["max"] as? Double)
      }
      #expect(try number("1 caller, durable commits", "holdfast") == 1)
      #expect(try number("one batch, durable commits", "holdfast") == 1)
      #if os(Linux)
        for depth in ["depth 0", "depth 10,000"] {
          #expect(try number("flushes, \(depth)", "holdfast") == 2)
          #expect(try number("flushes, \(depth)", "c") == 2)
          #expect(try number("bytes, \(depth)", "holdfast") <= number("bytes, \(depth)", "c"))
        }
      #endif
    }
  }

  static let mistakes: [(words: [String], exitCode: Int32, sentence: String)] = [
    (["--only", "W9"], 64, "'W9' is no value for '--only <workloads>'"),
    (["--only", "W1,"], 64, "separated by commas"),
    (["--rounds", "0"], 64, "a whole number from 1 to"),
    (["--records", "5"], 64, "a whole number from 1000 to"),
    (["--jsn", "x"], 64, "did you mean '--json'?"),
    (["--only", "W3", "--json", "/nowhere/at/all.json"], 73, "can't be made"),
    (["--only", "W3", "--directory", "/proc/none"], 73, "can't be made"),
  ]

  @Test("refuses what it cannot do with a sentence, before it measures", arguments: mistakes)
  func mistake(words: [String], exitCode: Int32, sentence: String) throws {
    let run = try run(words)
    #expect(run.exitCode == exitCode)
    #expect(run.errors.contains(sentence), "\(run.errors)")
    #expect(run.output == "")
  }

  @Test("draws a chart, where gnuplot is")
  func chart() throws {
    try withDirectory { directory in
      let chart = directory.appending(path: "chart.svg")
      let run = try run([
        "--only", "w3", "--rounds", "1", "--records", "1000", "--chart", chart.path,
        "--directory", directory.path,
      ])
      if run.exitCode == 69 {
        #expect(run.errors.contains("install gnuplot-nox"))
        return
      }
      #expect(run.exitCode == 0, "\(run.errors)")
      let drawing = try String(contentsOf: chart, encoding: .utf8)
      #expect(drawing.contains("<svg"))
      #expect(drawing.contains("W3 1,000 per transaction"))
      #expect(drawing.contains("sqlite-normal"))
    }
  }
}

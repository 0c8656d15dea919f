import Foundation
import Measuring
import ProfileStore
import ToolSupport

/// `bench`: the module LMDB and profiles against C on liblmdb and against SQLite, in one run.
enum BenchCommand {
  static let json = Option.optional(
    "json", .path.named("file"), help: "Write the results there, as one JSON object.")
  static let chart = Option.optional(
    "chart", .path.named("file"), help: "Draw the ratios to C there, as SVG; needs gnuplot.")
  static let only = Option.defaulted(
    "only", .workloads, to: Workload.allCases, help: "Measure these workloads only.")
  static let rounds = Option.defaulted(
    "rounds", .integer(in: 1...1_000), to: Runner.roundsByDefault,
    help: """
      How often each engine is measured. From \(Runner.roundsByDefault) on, what is compared \
      closely takes part in 11 to 31 rounds, which bars near 1 need.
      """)
  static let records = Option.defaulted(
    "records", .integer(in: 1_000...1_000_000), to: 50_000,
    help: "How many records the workloads have. The bars are meant for the default.")
  static let directory = Option.optional(
    "directory", .path.named("directory"),
    help: """
      Where the data is written while it runs: a disk, not memory, or nothing is durable. Beside \
      the program by default.
      """)
  static let strict = Flag("strict", help: "End with 1 if any bar does not hold.")

  static let command = Command(
    "bench", summary: "Measures the module LMDB and profiles against C on liblmdb and SQLite.",
    discussion: """
      Each round measures the engines by turns, each in directories of its own, and checks that all \
      of them read and wrote the same. The ratio to C is the median of the rounds' own ratios, \
      speed over speed: higher is faster. A bar near 1 is judged by the upper quartile of these.

      SQLite has a write-ahead log, prepared statements, its file mapped, a cache of 64 MiB, and a \
      table WITHOUT ROWID whose key is the blob: its fastest layout but for upserts of shuffled \
      keys, where the other is measured too. It has no commits that callers share.

      R1 to R6 measure profiles: their replays, passes, outbox and registry, beside C doing the same \
      work on liblmdb.
      """,
    parameters: [json, chart, only, rounds, records, directory, strict],
    examples: [
      .init("bench --json results.json --chart results.svg", "Everything."),
      .init("bench --only W2,W3 --rounds 11", "Reads only, more rounds."),
    ],
    subcommands: [ResidentCommand.command, ReplayedCommand.command]
  ) { invocation in
    try await onThreadOfItsOwn { try run(invocation) }
  }

  /// The engines block, which a task's thread must not.
  static func onThreadOfItsOwn<R: Sendable>(
    _ body: @escaping @Sendable () throws -> R
  ) async throws -> R {
    try await withCheckedThrowingContinuation { continuation in
      let thread = Thread { continuation.resume(with: Result { try body() }) }
      thread.stackSize = 8 << 20
      thread.start()
    }
  }

  private static func run(_ invocation: Invocation) throws -> ExitCode {
    let console = invocation.console
    let gnuplot = try chartProgram(invocation[chart])
    for file in [invocation[json], invocation[chart]].compactMap({ $0 }) { try requireRoom(file) }
    #if DEBUG
      console.note("bench: this build is not optimised; its times mean nothing")
    #endif
    let context = try Context(
      records: invocation[records], directory: dataDirectory(invocation[directory]))
    let directory = context.directory
    // An interrupt must not leave gigabytes behind.
    let registration = Interrupts.onInterrupt { _ in
      try? FileManager.default.removeItem(at: directory)
    }
    defer { registration.cancel() }
    let report: Report
    do {
      report = try measure(
        invocation[only], Runner(rounds: invocation[rounds], console: console), context)
      try context.removeAll()
    } catch {
      try? context.removeAll()
      throw error
    }
    try console.print(report.table().lines())
    for note in report.notes { try console.print(note) }
    try console.print(report.conclusion)
    if let file = invocation[json] { try write(JSONText.encoded(report) + "\n", to: file) }
    if let gnuplot, let file = invocation[chart] {
      _ = try ChildProcess.output(
        gnuplot, ["-"], input: Chart.commands(for: report, file: file))
    }
    let failed = report.misses.contains { row in
      invocation[strict] || row.verdicts.contains { $0.bar.isCount && !$0.holds }
    }
    return failed ? .checkFailed : .ok
  }

  private static func measure(
    _ workloads: [Workload], _ runner: Runner, _ context: Context
  ) throws -> Report {
    var samples = Samples()
    var reads: ReadStores?
    for workload in workloads {
      switch workload {
      case .applyPages:
        for group in ApplyPages(context: context).groups() { try runner.run(group, into: &samples) }
      case .scan, .get:
        let stores = try reads ?? ReadStores(context)
        reads = stores
        for group in workload == .scan ? [stores.scanGroup()] : stores.getGroups() {
          try runner.run(group, into: &samples)
        }
      case .durableWrite:
        for group in try DurableWrites(context: context).groups() {
          try runner.run(group, into: &samples)
        }
      case .manyStores:
        let stores = try ManyStores(context)
        for group in stores.groups() { try runner.run(group, into: &samples) }
        try stores.remove()
      case .readBesideWriter:
        try runner.run(BesideAndStaged(context: context).besideGroup(), into: &samples)
      case .stagedPages:
        try runner.run(BesideAndStaged(context: context).stagedGroup(), into: &samples)
      case .managedApply:
        for group in try ManagedApply(context).groups() { try runner.run(group, into: &samples) }
      case .enqueue:
        for group in try Enqueues(context: context).groups() {
          try runner.run(group, into: &samples)
        }
      case .readBack:
        let readBack = try ReadBack(context)
        try runner.run(readBack.group(), into: &samples)
        try readBack.remove()
      case .replay:
        let replays = try Replays(context)
        for group in replays.groups() { try runner.run(group, into: &samples) }
        try replays.remove()
      case .push:
        for keeping in [ProfileRegistry.RecordKeeping.app, .area] {
          let pushes = try Pushes(context, keeping: keeping)
          try runner.run(pushes.group(), into: &samples)
          try pushes.remove()
        }
      case .switching:
        let switching = try Switching(context)
        for group in switching.groups() { try runner.run(group, into: &samples) }
        try switching.remove()
      }
    }
    try reads?.remove()
    return Report(
      machine: Machine.described(directory: context.directory.path(percentEncoded: false)),
      commit: Machine.commit, versions: Machine.versions, records: context.documents.count,
      results: Report.rows(of: samples))
  }

  // MARK: - Files

  private static func dataDirectory(_ chosen: String?) -> URL {
    let parent =
      chosen.map { URL(filePath: $0, directoryHint: .isDirectory) }
      ?? URL(filePath: CommandLine.executable).deletingLastPathComponent()
    return parent.appending(
      path: "bench-data-\(ProcessInfo.processInfo.processIdentifier)", directoryHint: .isDirectory)
  }

  private static func chartProgram(_ file: String?) throws -> String? {
    guard file != nil else { return nil }
    guard let found = ChildProcess.find("gnuplot") else {
      throw ToolFailure(
        .unavailable, "gnuplot draws the chart and is not there; install gnuplot-nox")
    }
    return found
  }

  /// Said before minutes of work, not behind them.
  private static func requireRoom(_ file: String) throws {
    let parent = URL(filePath: file).deletingLastPathComponent().path(percentEncoded: false)
    guard FileManager.default.isWritableFile(atPath: parent) else {
      throw ToolFailure(.cannotCreate, "\(file) can't be made: its directory can't be written")
    }
  }

  private static func write(_ text: String, to file: String) throws {
    do {
      try text.write(toFile: file, atomically: true, encoding: .utf8)
    } catch {
      throw ToolFailure(.cannotCreate, "\(file) can't be written: \(error.localizedDescription)")
    }
  }
}

import CMachine
import Foundation
import Simulation

/// One seed in a process of its own: nothing of another one is in its memory, and what ends the process
/// ends nothing else.
struct SeedRun {
  /// So long it may take before it counts as one that does not end, in seconds.
  static let secondsMax = 120.0

  let seed: UInt64
  let child: Int32
  private let directory: String

  /// Begins it.
  init(_ seed: UInt64, _ order: Order, taking: Set<Int>?, log: String? = nil) {
    let directory = "\(order.directory)/holdfast-simulation-\(getpid())-\(seed)"
    // What stands in a buffer would be written by the child, too.
    fflush(nil)
    let child = machine_fork()
    if child == 0 { Self.run(seed, order, taking, log, directory) }
    self.seed = seed
    self.directory = directory
    self.child = child
  }

  private static func result(_ directory: String) -> String { directory + ".result" }

  private static func run(
    _ seed: UInt64, _ order: Order, _ taking: Set<Int>?, _ log: String?, _ directory: String
  ) -> Never {
    do {
      try FileManager.default.createDirectory(
        atPath: directory, withIntermediateDirectories: true)
      let world = World(
        Plan(seed: seed, stepCount: order.stepCount), on: NativeMachine(seed: seed),
        in: directory, keepsLog: log != nil)
      let outcome = world.run { taking?.contains($0) ?? true }
      try outcome.encoded().write(to: URL(filePath: result(directory)))
      if let log {
        try Data((world.lines.joined(separator: "\n") + "\n").utf8).write(to: URL(filePath: log))
      }
    } catch {
      FileHandle.standardError.write(Data("simulator: seed \(seed): \(error)\n".utf8))
      _exit(70)
    }
    _exit(0)
  }

  /// Waits for it and takes its files away.
  func outcome() -> Outcome {
    let status = machine_wait(child, Self.secondsMax)
    defer {
      for path in [directory, Self.result(directory)] {
        try? FileManager.default.removeItem(atPath: path)
      }
    }
    if status == 0, let bytes = FileManager.default.contents(atPath: Self.result(directory)),
      let outcome = Outcome(decoding: bytes)
    {
      return outcome
    }
    let what =
      status == 128 + SIGKILL
      ? "did not end within \(Int(Self.secondsMax)) s" : "ended its process with \(status)"
    return Outcome(
      seed: seed, counts: World.Counts(), violations: [Violation(.failing, "the seed \(what)")],
      digest: 0, lineCount: 0)
  }
}

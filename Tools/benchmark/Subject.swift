import CBench
import Measuring

/// One number that was measured.
struct Reading {
  let engine: Engine
  let metric: Metric
  let value: Double

  init(_ engine: Engine, _ metric: Metric, _ value: Double) {
    self.engine = engine
    self.metric = metric
    self.value = value
  }
}

/// One engine's part in a workload, done once in each round.
struct Subject {
  /// Takes part in the further rounds that bars near 1 need.
  let isPaired: Bool
  let measure: () throws -> [Reading]

  /// What is compared closely, all but SQLite, is paired always.
  /// - Parameter isPaired: others are where it is said; a disk's moods need more than few rounds.
  init(
    _ engine: Engine, isPaired: Bool = false,
    _ measure: @escaping () throws -> [(Metric, Double)]
  ) {
    self.measure = { try measure().map { Reading(engine, $0.0, $0.1) } }
    self.isPaired = isPaired || [.c, .lmdb, .holdfast].contains(engine)
  }

  /// Parts of several engines, one after another, of which one needs what the other did.
  init(together measure: @escaping () throws -> [Reading]) {
    self.measure = measure
    isPaired = true
  }
}

/// Subjects that are measured by turns.
struct Group {
  let workload: Workload
  /// For the person who waits.
  let title: String
  let subjects: [Subject]
  /// How many rounds of C and the module it takes to see past what else the machine does: more where
  /// a round is short.
  let pairedRounds: Int

  init(
    _ workload: Workload, _ title: String, pairedRounds: Int = 11, _ subjects: [Subject]
  ) {
    self.workload = workload
    self.title = title
    self.pairedRounds = pairedRounds
    self.subjects = subjects
  }
}

/// Calls of functions that allocate while `body` runs, in all threads, for each operation.
func allocations(in body: () throws -> Pass) rethrows -> Double {
  cbench_start_counting()
  var isCounting = true
  defer { if isCounting { _ = cbench_stop_counting() } }
  let pass = try body()
  let count = cbench_stop_counting()
  isCounting = false
  return Double(count) / Double(max(pass.operations, 1))
}

var canCountAllocations: Bool { cbench_can_count_allocations() != 0 }

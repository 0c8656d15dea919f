import LMDB
import ToolSupport

/// An engine that did not do its work.
struct BenchFailure: Error {
  let sentence: String

  static let meanings: [ExitCode: String] = [
    .ok: "Everything was measured; whether bars hold is in the table.",
    .checkFailed: """
    A count is beyond its bar (allocations, commits, bytes), or, with --strict, another bar does \
    not hold.
    """,
    .dataError: "Two engines did not do the same work; nothing can be compared.",
    .unavailable: "An engine, or gnuplot, did not work.",
    .cannotCreate: "The JSON, the chart or the data directory can't be made.",
  ]

  static func translate(_ error: any Error) -> ToolFailure? {
    switch error {
    case let error as BenchFailure: ToolFailure(.unavailable, error.sentence)
    case let error as Disagreement: ToolFailure(.dataError, error.sentence)
    case let error as LMDBError: ToolFailure(.unavailable, "lmdb: \(error)")
    default: nil
    }
  }
}

/// What two engines read or wrote was not the same.
struct Disagreement: Error {
  let sentence: String
}

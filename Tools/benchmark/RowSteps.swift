import CBench
import Foundation

/// Copies of a data file, for C to look at and to write.
enum DataCopy {
  /// Copies the file into a directory of its own, which is made. Nobody may write it meanwhile.
  static func make(of file: String, in directory: String) throws {
    try FileManager.default.createDirectory(
      atPath: directory, withIntermediateDirectories: false)
    try FileManager.default.copyItem(atPath: file, toPath: directory + "/data.mdb")
  }
}

/// The rows that transactions put and deleted, step by step.
final class RowSteps {
  private var steps: [OpaquePointer?] = []

  deinit { for step in steps { cbench_rows_free(step) } }

  /// Adds what lies between two copies of a data file.
  func note(from before: String, to after: String) throws {
    var code: Int32 = 0
    guard let rows = cbench_rows_between(before, after, &code) else {
      throw BenchFailure(
        sentence: "c: \(after): \(String(cString: cbench_lmdb_message(code)))")
    }
    steps.append(rows)
  }

  /// How many rows were put or deleted, in all steps.
  var count: Int { steps.reduce(0) { $0 + cbench_rows_count($1) } }
  /// The tables that each step touched, added up.
  var tableCount: Int { steps.reduce(0) { $0 + cbench_rows_table_count($1) } }
  /// Bytes of the keys, and of the values that were put.
  var byteCount: Int { steps.reduce(0) { $0 + cbench_rows_size($1) } }

  /// C does the same in a copy, each step in a durable transaction.
  func perform(
    in directory: String, deletesOnly: Bool = false, counting writes: inout cbench_writes
  ) -> cbench_pass {
    cbench_rows_perform(directory, steps, steps.count, deletesOnly ? 1 : 0, &writes)
  }
}

import CBench
import Foundation
import LMDB
import Measuring
import ToolSupport

/// `bench resident`: opens stores, keeps them open, and prints how much memory that took.
///
/// `bench` starts itself with it, so that no engine's memory is counted as another's.
enum ResidentCommand {
  static let engine = Option.required("engine", .engine, help: "What opens the stores.")
  static let stores = Option.required(
    "stores", .path.named("prefix"), help: "Where the stores are: the path before their numbers.")
  static let count = Option.required(
    "count", .integer(in: 1...100_000), help: "How many stores are opened.")

  static let command = Command(
    "resident", summary: "Prints the bytes of memory that open stores take; used by bench itself.",
    parameters: [engine, stores, count]
  ) { invocation in
    let bytes = try grown(
      invocation[engine], invocation[stores], invocation[count], Documents(count: 1).keys[0])
    try invocation.console.print(String(bytes))
    return .ok
  }

  private static func grown(
    _ engine: Engine, _ prefix: String, _ count: Int, _ key: UUID
  ) throws -> Int {
    var kept: [ModuleStore] = []
    kept.reserveCapacity(count)
    let before = try residentByteCount()
    for number in 0..<count {
      let directory = prefix + String(number)
      if engine == .lmdb {
        let store = try ModuleStore(directory)
        _ = try store.getOnce(key)
        kept.append(store)
      } else {
        try keepOpen(engine, directory, key)
      }
    }
    let after = try residentByteCount()
    // The stores are open until here.
    return withExtendedLifetime(kept) { after - before }
  }

  private static func keepOpen(_ engine: Engine, _ directory: String, _ key: UUID) throws {
    let code = key.withBytes { key in
      engine == .c
        ? cbench_lmdb_keep_open(directory, Context.mapByteCount, key)
        : cbench_sqlite_keep_open(
          SQLiteStore.file(in: directory), SQLiteStore.form(engine), key)
    }
    guard code == 0 else {
      throw BenchFailure(sentence: "\(engine.rawValue): \(directory): code \(code)")
    }
  }

  /// See proc(5), statm: the second number is the resident pages.
  private static func residentByteCount() throws -> Int {
    let text = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8)
    let words = text.split(separator: " ")
    guard words.count > 1, let pages = Int(words[1]) else {
      throw BenchFailure(sentence: "/proc/self/statm can't be understood")
    }
    return pages * sysconf(Int32(_SC_PAGESIZE))
  }

  /// Runs the command in a process of its own.
  static func measure(_ engine: Engine, parent: String, count: Int) throws -> Double {
    let words = [
      "resident", "--engine", engine.rawValue, "--stores", parent, "--count", String(count),
    ]
    let text = try ChildProcess.output(
      CommandLine.executable, words
    ).trimmingCharacters(in: .whitespacesAndNewlines)
    guard let bytes = Double(text) else {
      throw BenchFailure(sentence: "bench resident said '\(text)'")
    }
    return bytes
  }
}

extension ValueFormat where Value == Engine {
  /// Those that keep records by key.
  static var engine: ValueFormat {
    let names = Engine.stores.map(\.rawValue)
    return ValueFormat(
      "engine", expectation: "one of \(names.joined(separator: ", "))", write: \.rawValue,
      read: { text in Engine.stores.first { $0.rawValue == text } })
  }
}

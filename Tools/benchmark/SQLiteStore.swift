import CBench
import Measuring

/// SQLite through its C API.
struct SQLiteStore: ~Copyable {
  private let store: OpaquePointer
  private let engine: Engine

  static func file(in directory: String) -> String { directory + "/records.sqlite" }

  static func form(_ engine: Engine) -> Int32 {
    Int32((engine == .sqliteNormal ? cbench_sqlite_normal : cbench_sqlite_full).rawValue)
  }

  /// - Parameter byRowID: a table by rowid with an index on the key, in place of one by key.
  init(_ directory: String, _ engine: Engine, byRowID: Bool = false) throws {
    var code: Int32 = 0
    let form = byRowID ? Int32(cbench_sqlite_rowid.rawValue) : Self.form(engine)
    guard let opened = cbench_sqlite_open(Self.file(in: directory), form, &code) else {
      throw BenchFailure(
        sentence: "sqlite: \(directory): \(String(cString: cbench_sqlite_message(code)))")
    }
    store = opened
    self.engine = engine
  }

  deinit { cbench_sqlite_close(store) }

  private static func pass(_ pass: cbench_pass, _ engine: Engine) throws -> Pass {
    try Pass(pass, engine, message: cbench_sqlite_message)
  }

  func apply(_ documents: Documents, in order: [UInt32]) throws -> Pass {
    try Context.withRecords(documents) {
      try Self.pass(cbench_sqlite_apply(store, $0, order, Context.page), engine)
    }
  }

  func scan(passes: Int) throws -> Pass {
    try Self.pass(cbench_sqlite_scan(store, Context.page, Int32(passes)), engine)
  }

  func get(_ documents: Documents, at indexes: [UInt32], together: Int) throws -> Pass {
    try Context.withRecords(documents) {
      try Self.pass(cbench_sqlite_get(store, $0, indexes, indexes.count, together), engine)
    }
  }

  func write(_ documents: Documents, count: Int, callers: Int) throws -> Pass {
    try Context.withRecords(documents) {
      try Self.pass(cbench_sqlite_write(store, $0, count, callers), engine)
    }
  }

  static func beside(
    _ directory: String, _ engine: Engine, _ context: Context, nanoseconds: UInt64
  ) throws -> Pass {
    try Context.withRecords(context.documents) { first in
      try Context.withRecords(context.swapped) { second in
        try pass(
          cbench_sqlite_beside(
            file(in: directory), form(engine), first, second, Context.page, nanoseconds,
            context.digest),
          engine)
      }
    }
  }

  static func visit(
    _ paths: PathList, _ engine: Engine, key: UnsafePointer<UInt8>
  ) throws -> Pass {
    try pass(cbench_sqlite_visit(paths.pointers, paths.count, form(engine), key), engine)
  }
}

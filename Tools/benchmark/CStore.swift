import CBench
import Measuring

/// C straight on liblmdb.
struct CStore: ~Copyable {
  private let store: OpaquePointer

  /// - Parameter isSynced: whether a commit waits for the disk.
  init(_ directory: String, isSynced: Bool = true) throws {
    var code: Int32 = 0
    let open = isSynced ? cbench_lmdb_open : cbench_lmdb_open_unsynced
    guard let opened = open(directory, Context.mapByteCount, &code) else {
      throw BenchFailure(sentence: "c: \(directory): \(String(cString: cbench_lmdb_message(code)))")
    }
    store = opened
  }

  deinit { cbench_lmdb_close(store) }

  private static func pass(_ pass: cbench_pass) throws -> Pass {
    try Pass(pass, .c, message: cbench_lmdb_message)
  }

  func apply(
    _ documents: Documents, named names: RecordNames? = nil, in order: [UInt32]
  ) throws -> Pass {
    try Context.withRecords(documents, named: names, count: order.count) {
      try Self.pass(cbench_lmdb_apply(store, $0, order, Context.page))
    }
  }

  func scan(passes: Int, prefetch: Bool) throws -> Pass {
    try Self.pass(cbench_lmdb_scan(store, Context.page, Int32(passes), prefetch ? 1 : 0))
  }

  func get(_ documents: Documents, at indexes: [UInt32], together: Int) throws -> Pass {
    try Context.withRecords(documents) {
      try Self.pass(cbench_lmdb_get(store, $0, indexes, indexes.count, together))
    }
  }

  func write(_ documents: Documents, count: Int, callers: Int) throws -> Pass {
    try Context.withRecords(documents) { records in
      callers == 1
        ? try Self.pass(cbench_lmdb_write_alone(store, records, count))
        : try Self.pass(cbench_lmdb_write_together(store, records, count, callers))
    }
  }

  func beside(_ context: Context, nanoseconds: UInt64) throws -> Pass {
    try Context.withRecords(context.documents) { first in
      try Context.withRecords(context.swapped) { second in
        try Self.pass(
          cbench_lmdb_beside(store, first, second, Context.page, nanoseconds, context.digest))
      }
    }
  }

  func stage(_ documents: Documents) throws -> Pass {
    try Context.withRecords(documents) {
      try Self.pass(cbench_lmdb_stage(store, $0, Context.page))
    }
  }

  func scanStaged(passes: Int) throws -> Pass {
    try Self.pass(cbench_lmdb_scan_staged(store, Int32(passes)))
  }

  static func visit(_ paths: PathList, key: UnsafePointer<UInt8>) throws -> Pass {
    try pass(cbench_lmdb_visit(paths.pointers, paths.count, Context.mapByteCount, key))
  }
}

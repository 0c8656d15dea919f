import CBench
import Foundation
import LMDB
import Measuring

/// W5: stores that are opened, asked once and closed, and what stores that stay open cost.
final class ManyStores {
  static let storesByDefault = 1_000
  private static let recordsInEach = 20

  private let context: Context
  private let lmdb: String
  private let sqlite: String
  private let lmdbPaths: PathList
  private let sqliteFiles: PathList
  private let storeCount: Int

  /// One store of each kind is written, the others are copies of it.
  init(_ context: Context) throws {
    self.context = context
    storeCount = min(Self.storesByDefault, max(context.documents.count / 50, 2))
    lmdb = try context.freshDirectory()
    sqlite = try context.freshDirectory()
    let few = Array(context.inOrder.prefix(Self.recordsInEach))
    let model = Documents(count: few.count)
    lmdbPaths = PathList(
      try Self.make(lmdb, storeCount) { directory in
        _ = try CStore(directory).apply(model, in: few)
        try FileManager.default.removeItem(atPath: directory + "/lock.mdb")
      })
    sqliteFiles = PathList(
      try Self.make(sqlite, storeCount) { directory in
        _ = try SQLiteStore(directory, .sqliteFull).apply(model, in: few)
      }.map(SQLiteStore.file(in:)))
    // What an engine does to a store once and for all is no part of opening it.
    for engine in Engine.stores { _ = try visit(engine) }
  }

  private static func make(
    _ parent: String, _ count: Int, _ write: (String) throws -> Void
  ) throws -> [String] {
    let paths = (0..<count).map { parent + String($0) }
    try FileManager.default.createDirectory(atPath: paths[0], withIntermediateDirectories: false)
    try write(paths[0])
    for path in paths.dropFirst() {
      try FileManager.default.copyItem(atPath: paths[0], toPath: path)
    }
    return paths
  }

  func remove() throws {
    try context.remove(lmdb)
    try context.remove(sqlite)
  }

  func groups() -> [Group] {
    [
      Group(.manyStores, Metric.visit.name, pairedRounds: 21, visits()),
      Group(
        .manyStores, Metric.resident.name,
        Engine.stores.map { engine in
          Subject(engine) { [self] in [(.resident, try resident(engine))] }
        }),
    ]
  }

  private func visits() -> [Subject] {
    Engine.stores.map { engine in
      Subject(engine, isPaired: engine == .sqliteFull) { [self] in
        let pass = try visit(engine)
        let one = context.digest(of: context.inOrder.prefix(1))
        return [
          (
            .visit,
            try pass.verified(
              engine, "W5", operations: storeCount, digest: one &* UInt64(storeCount)
            ).speed
          )
        ]
      }
    }
  }

  private func visit(_ engine: Engine) throws -> Pass {
    try context.documents.keys[0].withBytes { key in
      switch engine {
      case .c: try CStore.visit(lmdbPaths, key: key)
      case .lmdb: try ModuleStore.visit(lmdbPaths.paths, context.documents.keys[0])
      case .sqliteFull, .sqliteNormal: try SQLiteStore.visit(sqliteFiles, engine, key: key)
      case .holdfast: preconditionFailure("profiles are measured elsewhere")
      }
    }
  }

  /// What a process of its own has more in memory when half of the stores are open in it.
  private func resident(_ engine: Engine) throws -> Double {
    let isSQLite = engine == .sqliteFull || engine == .sqliteNormal
    return try ResidentCommand.measure(
      engine, parent: isSQLite ? sqlite : lmdb, count: max(storeCount / 2, 1))
  }
}

extension ModuleStore {
  /// Opens each store, gets one key, closes it.
  static func visit(_ paths: [String], _ key: UUID) throws -> Pass {
    var pass = Pass()
    let start = cbench_now()
    for path in paths {
      let store = try ModuleStore(path)
      pass.digest &+= try store.getOnce(key)
      try store.close()
      pass.operations += 1
    }
    pass.nanoseconds = cbench_now() - start
    return pass
  }

  func getOnce(_ key: UUID) throws -> UInt64 {
    try environment.read { transaction in
      guard let value = try transaction.bytes(of: key, in: table) else {
        throw Disagreement(sentence: "lmdb: a key is not there")
      }
      return touch(value)
    }
  }
}

extension UUID {
  /// Lends the 16 bytes to C.
  func withBytes<R>(_ body: (UnsafePointer<UInt8>) throws -> R) rethrows -> R {
    try withUnsafeBytes(of: uuid) { bytes in
      try bytes.withMemoryRebound(to: UInt8.self) { bytes in
        guard let address = bytes.baseAddress else { preconditionFailure("a UUID has 16 bytes") }
        return try body(address)
      }
    }
  }
}

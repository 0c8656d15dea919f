import LMDB
import Testing

@Suite("The examples of Many environments and processes")
struct ManyEnvironmentsTests {
  let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  @Test("a path is open once, however many ask for it")
  func once() throws {
    let path = directory.file("store")
    let first = try Environment.open(at: path)
    let second = try Environment.open(at: path)
    #expect(first === second)
  }

  @Test("a pool keeps a bounded number open")
  func pool() async throws {
    let path = directory.file("store")

    EnvironmentPool.raiseDescriptorLimit()
    let pool = try EnvironmentPool()
    let count = try await pool.withEnvironment(at: path) { environment in
      let notes = try environment.table("notes", key: UInt64Codec.self, value: TextCodec.self)
      try await environment.write { try $0.put("Buy bread", for: 1, in: notes) }
      return try environment.read { try $0.count(of: notes) }
    }

    #expect(count == 1)
    #expect(pool.statistics.openCount == 1)
    try await pool.closeAll()
    pool.resume()
    #expect(pool.statistics.openCount == 0)
  }

  @Test("readers of all processes are listed with what they keep")
  func readers() throws {
    let environment = try Environment.open(at: directory.file("store"))
    try environment.read { _ in
      let slow = try environment.readers().filter { ($0.lag ?? 0) > 1_000 }
      for reader in slow { print("process \(reader.process) keeps an old snapshot") }
      #expect(slow.isEmpty)
    }
    try environment.clearDeadReaders()
  }

  @Test("an inspecting tool opens for reading and leaves nothing behind")
  func inspecting() throws {
    let path = directory.file("store")
    do {
      let environment = try Environment.open(at: path)
      _ = try environment.table("names", key: TextCodec.self, value: EmptyCodec.self)
      try environment.close()
    }
    var configuration = Environment.Configuration()
    configuration.access = .read
    let environment = try Environment.open(at: path, configuration: configuration)
    let statistics = try environment.detailedStatistics()
    for (name, table) in statistics.tables { print(name, table.entryCount, table.pageCount) }
    #expect(statistics.tables["names"]?.entryCount == 0)
  }
}

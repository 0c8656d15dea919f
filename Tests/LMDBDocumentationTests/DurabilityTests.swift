import LMDB
import Testing

/// Runs where its environment is written.
actor Stock {
  private let environment: Environment
  private let counts: Table<TextCodec, UInt32Codec>

  nonisolated var unownedExecutor: UnownedSerialExecutor {
    environment.writer.asUnownedSerialExecutor()
  }

  init(_ environment: Environment) throws {
    self.environment = environment
    counts = try environment.table("counts", key: TextCodec.self, value: UInt32Codec.self)
  }

  func add(_ count: UInt32, of item: String) throws {
    try environment.write { transaction in
      let old = try transaction.value(of: item, in: counts) ?? 0
      try transaction.put(old + count, for: item, in: counts)
    }
  }
}

@Suite("The examples of Durability", .timeLimit(.minutes(5)))
struct DurabilityTests {
  let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  @Test("a level is chosen when the environment is opened")
  func level() async throws {
    let path = directory.file("cache")
    var configuration = Environment.Configuration()
    configuration.durability = .mayLoseLastCommit
    let cache = try Environment.open(at: path, configuration: configuration)
    #expect(cache.configuration.durability == .mayLoseLastCommit)
    try await cache.sync()
  }

  @Test("writes that arrive while a commit runs share the next one")
  func groups() async throws {
    let environment = try Environment.open(at: directory.file("environment"))
    let numbers = try environment.table("numbers", key: UInt64Codec.self, value: EmptyCodec.self)
    let before = environment.commitCount

    try await withThrowingTaskGroup { group in
      for number in UInt64(0)..<256 {
        group.addTask {
          try await environment.write { try $0.put((), for: number, in: numbers) }
        }
      }
      try await group.waitForAll()
    }

    #expect(try environment.read { try $0.count(of: numbers) } == 256)
    #expect(environment.commitCount - before < 256)
  }

  @Test("an error in the closure undoes its own changes")
  func undone() async throws {
    struct OutOfBread: Error {}
    let environment = try Environment.open(at: directory.file("environment"))
    let stock = try environment.table("stock", key: TextCodec.self, value: UInt32Codec.self)

    func take(_ item: String) async throws {
      try await environment.write { transaction in
        let count = try transaction.value(of: item, in: stock) ?? 0
        guard count > 0 else { throw OutOfBread() }
        try transaction.put(count - 1, for: item, in: stock)
      }
    }

    try await environment.write { try $0.put(1, for: "bread", in: stock) }
    try await take("bread")
    await #expect(throws: OutOfBread.self) { try await take("bread") }
  }

  @Test("an actor may run where its environment is written")
  func writerActor() async throws {
    let environment = try Environment.open(at: directory.file("environment"))
    let stock = try Stock(environment)
    try await stock.add(2, of: "bread")
    try await stock.add(3, of: "bread")
    let counts = try environment.table("counts", key: TextCodec.self, value: UInt32Codec.self)
    #expect(try environment.read { try $0.value(of: "bread", in: counts) } == 5)
  }

  @Test("what was full is named, and deleting makes room")
  func full() async throws {
    var configuration = Environment.Configuration()
    configuration.mapSizeByteCount = 1 << 20
    configuration.mapSizeByteCountMax = 2 << 20
    let environment = try Environment.open(
      at: directory.file("environment"), configuration: configuration)
    let images = try environment.table("images", key: UInt64Codec.self, value: BytesCodec.self)
    let image = [UInt8](repeating: 1, count: 300_000)
    for number in UInt64(1)...4 {
      try await environment.write { try $0.put(image, for: number, in: images) }
    }

    func save(_ image: [UInt8], as number: UInt64) async throws {
      do {
        try await environment.write { try $0.put(image, for: number, in: images) }
      } catch let error as LMDBError where error.code == .mapFull {
        try await environment.write { transaction in
          _ = try transaction.deleteAll(in: images, .before(number - 2))
        }
        throw error
      }
    }

    var saved: [UInt64] = []
    for number in UInt64(5)...12 {
      do {
        try await save(image, as: number)
        saved.append(number)
      } catch let error as LMDBError {
        #expect(error.code == .mapFull)
      }
    }
    #expect(saved.contains(5) && saved.contains { $0 > 8 })
    #expect(saved.count < 8)
  }

  @Test("what frees more than it stores goes through at the ceiling")
  func draining() async throws {
    let environment = try Environment.open(at: directory.file("environment"))
    let outbox = try environment.table("outbox", key: UInt64Codec.self, value: TextCodec.self)
    let marks = try environment.table("marks", key: TextCodec.self, value: UInt64Codec.self)
    try await environment.write { try $0.put("Hello", for: 7, in: outbox) }

    try await environment.write(for: .draining) { transaction in
      try transaction.delete(7, in: outbox)
      try transaction.put(7, for: "last sent", in: marks)
    }

    #expect(try environment.read { try $0.count(of: outbox) } == 0)
  }

  @Test("a copy is made while everybody goes on")
  func copy() async throws {
    let environment = try Environment.open(at: directory.file("environment"))
    let names = try environment.table("names", key: TextCodec.self, value: EmptyCodec.self)
    try await environment.write { try $0.put((), for: "Ada", in: names) }

    let backup = directory.file("backup")
    try await environment.copy(to: backup, compacting: true)

    let copy = try Environment.open(at: backup)
    let copiedNames = try copy.table("names", key: TextCodec.self, value: EmptyCodec.self)
    #expect(try copy.read { try $0.keys(in: copiedNames) } == ["Ada"])
  }

  @Test("a check names what is wrong")
  func check() async throws {
    let environment = try Environment.open(at: directory.file("environment"))
    let names = try environment.table("names", key: TextCodec.self, value: EmptyCodec.self)
    try await environment.write { try $0.put((), for: "Ada", in: names) }

    let report = try await environment.checkIntegrity()
    for finding in report.findings { print(finding) }

    #expect(report.isIntact)
  }
}

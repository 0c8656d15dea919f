import Foundation
import LMDB
import Testing

@Suite("PyPI's lmdb beside the module", .timeLimit(.minutes(5)))
struct PythonTests {
  let directory: TemporaryDirectory
  let environment: Environment

  init() throws {
    directory = try TemporaryDirectory()
    environment = try Environment.open(at: directory.file("env"))
  }

  /// Prints every table as JSON, keys and values in hexadecimal.
  private static let printAll = """
    import json, lmdb, sys
    env = lmdb.open(sys.argv[1], max_dbs=32, readonly=len(sys.argv) > 2)
    found = {}
    with env.begin() as txn:
        for name, _ in txn.cursor():
            table = env.open_db(name, txn, create=False)
            found[name.decode()] = [[k.hex(), v.hex()] for k, v in txn.cursor(table)]
    print(json.dumps(found))
    """

  @Test("reads what the module writes, while it is open and from a copy")
  func reads() async throws {
    let contents = try Contents(environment)
    try await environment.write { try contents.fill(&$0) }
    let here = try contents.all(environment)
    try await environment.copy(to: directory.file("whole"))
    try await environment.copy(to: directory.file("compact"), compacting: true)
    for place in ["env", "whole", "compact"] {
      for options in [[], ["readonly"]] {
        let text = try await Python.run(Self.printAll, [directory.file(place)] + options)
        let there = try JSONDecoder().decode([String: [[String]]].self, from: Data(text.utf8))
        #expect(there == here, "\(place) \(options)")
      }
    }
  }

  @Test("writes what the module reads, in tables of every kind that LMDB has")
  func writes() async throws {
    let place = directory.file("theirs")
    let written = try await Python.run(
      """
      import lmdb, struct, sys
      env = lmdb.open(sys.argv[1], max_dbs=32, map_size=1 << 26)
      kinds = {"plain": {}, "reversed": {"reverse_key": True}, "integers": {"integerkey": True},
        "many": {"dupsort": True}, "fixed": {"dupsort": True, "dupfixed": True},
        "numbers": {"dupsort": True, "dupfixed": True, "integerdup": True}}
      for name, options in kinds.items():
          table = env.open_db(name.encode(), **options)
          with env.begin(write=True, db=table) as txn:
              for i in range(3000):
                  key = struct.pack("@Q", i) if name == "integers" else b"%d" % (i * 7919)
                  if name in ("plain", "reversed", "integers"):
                      txn.put(key, b"" if i % 3 == 0 else b"v" * (i % 5000))
                  elif name == "many":
                      txn.put(b"%d" % (i % 10), b"value %d" % i + b"x" * (i % 100))
                  else:
                      txn.put(b"%d" % (i % 10), struct.pack("@Q", i * 31))
      with env.begin(write=True) as txn:
          for i in range(0, 3000, 2):
              txn.delete(b"%d" % (i * 7919), db=env.open_db(b"plain", txn))
      print(env.stat()["entries"])
      env.close()
      """, [place])
    #expect(written == "6\n")
    let theirs = try Environment.open(at: place)
    #expect(
      try theirs.tableNames() == ["fixed", "integers", "many", "numbers", "plain", "reversed"])
    let report = try await theirs.checkIntegrity()
    #expect(report.findings == [], "\(report.findings.prefix(5))")
    try await theirs.copy(to: directory.file("compact"), compacting: true)
    let ofCopy = try await Environment.checkIntegrity(at: directory.file("compact"))
    #expect(ofCopy.findings == [], "\(ofCopy.findings.prefix(5))")
    #expect(ofCopy.freePageCount == 0)
    let ofTheirs = try await Python.run(Self.printAll, [place, "readonly"])
    let read = try await Python.run(Self.printAll, [directory.file("compact"), "readonly"])
    #expect(read == ofTheirs && read.utf8.count > 1_000_000)
    let plain = try theirs.table("plain", key: BytesCodec.self, value: BytesCodec.self)
    let many = try theirs.multiTable("many", key: TextCodec.self, value: BytesCodec.self)
    let fixed = try theirs.multiTable("fixed", key: TextCodec.self, value: UInt64Codec.self)
    try theirs.read { transaction in
      #expect(try transaction.count(of: plain) == 1_500)
      for number in stride(from: 1, to: 3_000, by: 2) {
        let value = try transaction.value(of: Array("\(number * 7919)".utf8), in: plain)
        #expect(value?.count == (number % 3 == 0 ? 0 : number % 5_000))
      }
      #expect(try transaction.valueCount(of: "3", in: many) == 300)
      let first = try transaction.values(of: "0", in: fixed).map { $0.byteSwapped }
      #expect(first.sorted() == (0..<300).map { UInt64($0) * 310 })
    }
    try await theirs.write { try $0.put([1, 2], for: [0], in: plain) }
    try theirs.close()
    let text = try await Python.run(Self.printAll, [place])
    let again = try JSONDecoder().decode([String: [[String]]].self, from: Data(text.utf8))
    #expect(again["plain"]?.first == ["00", "0102"])
  }

  @Test("shares the writer's lock: 500 increments of each side all count")
  func bothWrite() async throws {
    let counters = try environment.table("counters", key: TextCodec.self, value: UInt64Codec.self)
    try await environment.write { try $0.put(0, for: "shared", in: counters) }
    async let theirs = Python.run(
      """
      import lmdb, struct, sys
      env = lmdb.open(sys.argv[1], max_dbs=32)
      table = env.open_db(b"counters", create=False)
      for i in range(500):
          while True:
              try:
                  with env.begin(write=True, db=table) as txn:
                      old, = struct.unpack(">Q", txn.get(b"shared"))
                      txn.put(b"shared", struct.pack(">Q", old + 1))
                      txn.put(b"theirs", struct.pack(">Q", i + 1))
                  break
              except lmdb.MapResizedError:
                  env.set_mapsize(0)
      print("done")
      """, [directory.file("env")])
    for _ in 0..<500 {
      try await environment.write { transaction in
        let old = try transaction.value(of: "shared", in: counters) ?? 0
        try transaction.put(old + 1, for: "shared", in: counters)
      }
    }
    #expect(try await theirs == "done\n")
    let (shared, own) = try environment.read { transaction in
      (
        try transaction.value(of: "shared", in: counters),
        try transaction.value(of: "theirs", in: counters)
      )
    }
    #expect(shared == 1_000)
    #expect(own == 500)
    #expect(try await environment.checkIntegrity().findings == [])
  }

  @Test("each adopts the map that the other has enlarged")
  func growth() async throws {
    var configuration = Environment.Configuration()
    configuration.mapSizeByteCount = 1 << 20
    let environment = try Environment.open(
      at: directory.file("small"), configuration: configuration)
    let table = try environment.table("t", key: TextCodec.self, value: BytesCodec.self)
    try await environment.write { try $0.put([1], for: "a", in: table) }
    let grown = try await Python.run(
      """
      import lmdb, sys
      env = lmdb.open(sys.argv[1], max_dbs=32, map_size=1 << 26)
      with env.begin(write=True, db=env.open_db(b"t", create=False)) as txn:
          for i in range(20):
              txn.put(b"theirs %d" % i, b"x" * 1000000)
      print(env.info()["last_pgno"])
      """, [directory.file("small")])
    #expect(try #require(Int(grown.trimmingCharacters(in: .newlines))) > 4_000)
    #expect(environment.mapByteCount == 1 << 20)
    let count = try environment.read { try $0.count(of: table) }
    #expect(count == 21)
    try await environment.write { transaction in
      for number in 0..<80 {
        try transaction.put(
          [UInt8](repeating: 2, count: 1_000_000), for: "ours \(number)", in: table)
      }
    }
    #expect(environment.mapByteCount > 1 << 26)
    let seen = try await Python.run(
      """
      import lmdb, sys
      env = lmdb.open(sys.argv[1], max_dbs=32)
      with env.begin(db=env.open_db(b"t", create=False)) as txn:
          print(txn.stat()["entries"])
      """, [directory.file("small")])
    #expect(seen == "101\n")
  }

  @Test("shows as a reader in the table, and is dead in it once killed")
  func reader() async throws {
    let table = try environment.table("t", key: TextCodec.self, value: BytesCodec.self)
    try await environment.write { try $0.put([1], for: "a", in: table) }
    let text = try await Python.run(
      """
      import lmdb, os, signal, sys
      env = lmdb.open(sys.argv[1], max_dbs=32)
      txn = env.begin()
      print(os.getpid(), txn.id(), flush=True)
      os.kill(os.getpid(), signal.SIGKILL)
      """,
      [directory.file("env")], mayBeKilled: true)
    let fields = text.split(whereSeparator: \.isWhitespace).compactMap { UInt64($0) }
    try #require(fields.count == 2)
    let slot = try #require(try environment.readers().first { UInt64($0.process) == fields[0] })
    #expect(slot.transaction == fields[1])
    #expect(!slot.isAlive)
    #expect(try environment.clearDeadReaders() == 1)
  }
}

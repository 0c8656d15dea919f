import Foundation
import LMDB
import Testing

@Suite("many tables of an environment at once")
struct ManyTables {
  let directory: String

  init() throws { directory = NSTemporaryDirectory() + "/many-tables-" + UUID().uuidString }

  private func made(_ names: [String]) throws {
    let environment = try Environment.open(at: directory)
    for name in names {
      let table = try environment.table(name, key: TextCodec.self, value: TextCodec.self)
      try environment.writeBlocking { try $0.put(name, for: "name", in: table) }
    }
    try environment.close()
  }

  private func name(in table: Table<TextCodec, TextCodec>, of environment: Environment) throws
    -> String?
  {
    try environment.read { try $0.value(of: "name", in: table) }
  }

  @Test("are opened in one transaction, those that are wanted; none is made")
  func openTables() throws {
    defer { try? FileManager.default.removeItem(atPath: directory) }
    try made(["a", "b", "c", "x"])
    let environment = try Environment.open(at: directory)
    let first = try environment.table("c", key: TextCodec.self, value: TextCodec.self)
    #expect(try environment.openTables { $0 != "x" } == ["a", "b", "c"])
    #expect(try environment.openTables() == ["a", "b", "c", "x"])
    for name in ["a", "b", "c", "x"] {
      let table = try environment.table(name, key: TextCodec.self, value: TextCodec.self)
      #expect(try self.name(in: table, of: environment) == name)
    }
    #expect(try name(in: first, of: environment) == "c")
    #expect(environment.commitCount == 0)
    try environment.close()
    let error = #expect(throws: LMDBError.self) { try environment.openTables() }
    #expect(error?.code == .closed)
  }

  @Test("more than fit are refused, and what is open stays open")
  func tooMany() throws {
    defer { try? FileManager.default.removeItem(atPath: directory) }
    try made(["a", "b", "c", "d"])
    var configuration = Environment.Configuration()
    configuration.tableCountMax = 2
    let environment = try Environment.open(at: directory, configuration: configuration)
    let error = #expect(throws: LMDBError.self) { try environment.openTables() }
    #expect(error?.code == .tablesFull)
    #expect(try environment.openTables { $0 < "c" } == ["a", "b"])
    let table = try environment.table("b", key: TextCodec.self, value: TextCodec.self)
    #expect(try name(in: table, of: environment) == "b")
    try environment.close()
  }

  @Test("of one that was closed and is opened again stay good, in whatever order they were opened")
  func again() throws {
    defer { try? FileManager.default.removeItem(atPath: directory) }
    try made(["a", "b", "c"])
    var environment = try Environment.open(at: directory)
    let c = try environment.table("c", key: TextCodec.self, value: TextCodec.self)
    let new = try environment.table("new", key: TextCodec.self, value: TextCodec.self)
    let a = try environment.table("a", key: TextCodec.self, value: TextCodec.self)
    try environment.writeBlocking { try $0.put("new", for: "name", in: new) }
    let many = try environment.multiTable("many", key: TextCodec.self, value: UInt64Codec.self)
    for round in 0..<3 {
      try environment.close()
      environment = try Environment.open(again: environment)
      #expect(try name(in: c, of: environment) == "c")
      #expect(try name(in: new, of: environment) == "new")
      #expect(try name(in: a, of: environment) == "a")
      let b = try environment.table("b", key: TextCodec.self, value: TextCodec.self)
      #expect(try name(in: b, of: environment) == "b")
      try environment.writeBlocking { try $0.put("\(round)", for: "round", in: a) }
      withExtendedLifetime(many) {}
    }
    #expect(try environment.read { try $0.value(of: "round", in: a) } == "2")
    try environment.close()
  }

  @Test("are made where the file was replaced by one without them")
  func replaced() throws {
    defer { try? FileManager.default.removeItem(atPath: directory) }
    try made(["a"])
    let closed = try Environment.open(at: directory)
    let a = try closed.table("a", key: TextCodec.self, value: TextCodec.self)
    let b = try closed.table("b", key: TextCodec.self, value: TextCodec.self)
    try closed.close()
    try FileManager.default.removeItem(atPath: directory + "/data.mdb")
    try FileManager.default.removeItem(atPath: directory + "/lock.mdb")
    try made(["z", "b"])
    let environment = try Environment.open(again: closed)
    #expect(try name(in: a, of: environment) == nil)
    #expect(try name(in: b, of: environment) == "b")
    try environment.close()
  }

  @Test("an environment that somebody has opened meanwhile is not opened again beside it")
  func openAlready() throws {
    defer { try? FileManager.default.removeItem(atPath: directory) }
    try made(["a"])
    let closed = try Environment.open(at: directory)
    try closed.close()
    let other = try Environment.open(at: directory)
    let error = #expect(throws: LMDBError.self) { try Environment.open(again: closed) }
    #expect(error?.code == .busy)
    #expect(!other.isClosed)
    try other.close()
  }
}

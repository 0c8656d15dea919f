import Dispatch
import Foundation
import LMDB
import Testing

/// What the compiler cannot see, and LMDB would answer with a hang or a crash.
@Suite("A mistake traps with a sentence:")
struct TrapTests {
  /// What the process said on its standard error before it ended.
  private func expect(
    _ sentence: String, _ result: ExitTest.Result?, _ location: SourceLocation = #_sourceLocation
  ) {
    let said = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
    #expect(said.contains(sentence), sourceLocation: location)
  }

  @Test("a write inside a write")
  func writeInWrite() async {
    let result = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      let directory = try TemporaryDirectory()
      let environment = try Environment.open(at: directory.path)
      func nested() throws { try environment.write { _ in try environment.write { _ in } } }
      try nested()
    }
    expect("LMDB: a write inside a write of one environment", result)
  }

  @Test("a write inside a read")
  func writeInRead() async {
    let result = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      let directory = try TemporaryDirectory()
      let environment = try Environment.open(at: directory.path)
      func nested() throws { try environment.read { _ in try environment.write { _ in } } }
      try nested()
    }
    expect("LMDB: a write inside a read of one environment", result)
  }

  @Test("closing an environment inside its transaction")
  func closeInRead() async {
    let result = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      let directory = try TemporaryDirectory()
      let environment = try Environment.open(at: directory.path)
      try environment.read { _ in try environment.close() }
    }
    expect("LMDB: an environment cannot be closed from inside one of its transactions", result)
  }

  @Test("closing an environment inside its write")
  func closeInWrite() async {
    let result = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      let directory = try TemporaryDirectory()
      let environment = try Environment.open(at: directory.path)
      func closing() throws { try environment.write { _ in try environment.close() } }
      try closing()
    }
    expect("LMDB: an environment cannot be closed from inside one of its transactions", result)
  }

  @Test("a table of another environment, in a read and in a write", arguments: [false, true])
  func foreignTable(isWriting: Bool) async {
    let result = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) { [isWriting] in
      let directory = try TemporaryDirectory()
      let one = try Environment.open(at: directory.file("one"))
      let two = try Environment.open(at: directory.file("two"))
      let table = try one.table("t", key: TextCodec.self, value: TextCodec.self)
      func use() throws {
        if isWriting {
          try two.write { try $0.put("b", for: "a", in: table) }
        } else {
          _ = try two.read { try $0.value(of: "a", in: table) }
        }
      }
      try use()
    }
    expect("LMDB: table t belongs to another environment", result)
  }

  @Test("opening a table inside a transaction")
  func tableInRead() async {
    let result = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      let directory = try TemporaryDirectory()
      let environment = try Environment.open(at: directory.path)
      _ = try environment.read { _ in
        try environment.table("t", key: TextCodec.self, value: TextCodec.self)
      }
    }
    expect("LMDB: open table t before the transaction that uses it", result)
  }

  @Test("a cursor kept in a variable outside a read")
  func keptCursor() async {
    let result = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      let directory = try TemporaryDirectory()
      let environment = try Environment.open(at: directory.path)
      let table = try environment.table("t", key: TextCodec.self, value: TextCodec.self)
      func keep() throws {
        var kept: Cursor<TextCodec, TextCodec>?
        try environment.read { kept = try $0.cursor(in: table) }
        _ = try kept?.key()
      }
      try keep()
    }
    expect("LMDB: a cursor was kept beyond its transaction", result)
  }

  @Test("a cursor kept in a variable outside a write")
  func keptWriteCursor() async {
    let result = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      let directory = try TemporaryDirectory()
      let environment = try Environment.open(at: directory.path)
      let table = try environment.table("t", key: TextCodec.self, value: TextCodec.self)
      func keep() throws {
        var kept: WriteCursor<TextCodec, TextCodec>?
        try environment.write { kept = try $0.writeCursor(in: table) }
        try kept?.delete()
      }
      try keep()
    }
    expect("LMDB: a cursor was kept beyond its transaction", result)
  }

  @Test("a copy begun inside a write")
  func copyInWrite() async {
    let result = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      let directory = try TemporaryDirectory()
      let environment = try Environment.open(at: directory.file("one"))
      func copy() throws {
        try environment.write { _ in try environment.copy(to: directory.file("two")) }
      }
      try copy()
    }
    expect("LMDB: a copy begun inside a write of the same environment", result)
  }

  @Test("a block that is no whole number of values")
  func brokenBlock() async {
    let result = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      let directory = try TemporaryDirectory()
      let environment = try Environment.open(at: directory.path)
      let table = try environment.multiTable("t", key: TextCodec.self, value: UInt32Codec.self)
      func insert() throws {
        let bytes: [UInt8] = [1, 2, 3, 4, 5]
        try environment.write { try $0.insertAll(values: bytes.span.bytes, for: "a", in: table) }
      }
      try insert()
    }
    expect("LMDB: 5 bytes are no values of 4 bytes", result)
  }

  @Test("a key asked of a cursor that stands on no entry")
  func cursorOffEntry() async {
    let result = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      let directory = try TemporaryDirectory()
      let environment = try Environment.open(at: directory.path)
      let table = try environment.table("t", key: TextCodec.self, value: TextCodec.self)
      _ = try environment.read { try $0.cursor(in: table).key() }
    }
    expect("LMDB: the cursor in table t stands on no entry", result)
  }

  @Test("but not cursors of transactions within transactions, whichever ends first")
  func cursorsWithin() throws {
    let directory = try TemporaryDirectory()
    let one = try Environment.open(at: directory.file("one"))
    let two = try Environment.open(at: directory.file("two"))
    let inOne = try one.table("t", key: UInt64Codec.self, value: TextCodec.self)
    let inTwo = try two.table("t", key: UInt64Codec.self, value: TextCodec.self)
    try one.write { try $0.put("one", for: 1, in: inOne) }
    try two.write { try $0.put("two", for: 2, in: inTwo) }
    let found = try one.read { outer in
      var kept: Cursor<UInt64Codec, TextCodec>?
      let fromTwo = try two.read { inner in
        // Opened inside the inner transaction, and the outer one's all the same.
        kept = try outer.cursor(in: inOne)
        var cursor = try inner.cursor(in: inTwo)
        return try cursor.next() ? try cursor.value() : ""
      }
      // The inner read sees the outer one's snapshot.
      let again = try one.read { inner in
        var cursor = try inner.cursor(in: inOne)
        return try cursor.next() ? try cursor.value() : ""
      }
      guard try kept?.next() == true, let value = try kept?.value() else { return [""] }
      return [fromTwo, again, value]
    }
    #expect(found == ["two", "one", "one"])
  }
}

import Foundation
import LMDB
import Testing

@Suite("Several processes on one environment", .ownThread)
struct ProcessTests {
  static let transactionCount = 10_000

  @Test("write 10,000 transactions each: the union is complete and no error surfaces")
  func twoWriters() throws {
    let scratch = try Scratch(inMemory: true)
    let path = scratch.file("env")
    let count = Self.transactionCount
    let writers = try (0..<2).map { try FaultChild(["count", path, "\($0)", "2", "\(count)"]) }
    for writer in writers { #expect(try writer.readLine() == "ready") }
    for writer in writers { writer.send("go") }
    for writer in writers {
      let line = try #require(try writer.readLine(within: 120))
      #expect(line.hasPrefix("ok "), "\(line)")
      #expect(writer.wait() == .exited(0))
    }
    let environment = try Environment.open(at: path)
    let records = try environment.table("records", key: UInt64Codec.self, value: BytesCodec.self)
    let sums = try environment.table("sums", key: TextCodec.self, value: UInt64Codec.self)
    try environment.read { transaction in
      #expect(try transaction.value(of: "sum", in: sums) == UInt64(2 * count))
      var next: UInt64 = 0
      try transaction.scan(records) { key, value in
        let number: UInt64 = key.loadBigEndian()
        guard number == next, value.byteCount == Int(number % 1_500) else { return .stop }
        next += 1
        return .next
      }
      #expect(next == UInt64(2 * count))
    }
    let mapByteCount = environment.mapByteCount
    print("two writers: \(2 * count) transactions, a map of 256 KiB grew to \(mapByteCount) bytes")
    #expect(mapByteCount >= 16 << 20)
    #expect(try environment.checkIntegrity().findings == [])
  }

  @Test("a child after fork is refused, may open for itself, and leaves the parent unharmed")
  func fork() throws {
    let scratch = try Scratch(inMemory: true)
    let (ending, lines) = try FaultChild.run(["fork", scratch.file("env"), "100"])
    #expect(ending == .exited(0))
    #expect(lines.last?.hasPrefix("ok ") == true, "\(lines.last ?? "nothing")")
    let children = lines.dropLast()
    #expect(children.count == 100)
    #expect(children.filter { !$0.hasSuffix(" ok") } == [])
    try FaultChild(["session"]).expect("intact \(scratch.file("env"))", "ok intact")
  }

  @Test("tasks that are cancelled and threads that end leave no transaction open")
  func endingTasks() throws {
    let scratch = try Scratch(inMemory: true)
    let (ending, lines) = try FaultChild.run(["tasks", scratch.file("env"), "600"])
    #expect(ending == .exited(0))
    #expect(lines.last?.hasPrefix("ok ") == true, "\(lines)")
    print("ending tasks: \(lines.last ?? "")")
  }
}

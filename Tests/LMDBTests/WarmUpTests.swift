import Foundation
import LMDB
import Testing

@Suite("Warming up")
struct WarmUpTests {
  #if os(Linux)
    @Test("maps the file ahead, so that a scan meets no page fault, and changes nothing")
    func faults() throws {
      let directory = try TemporaryDirectory()
      do {
        let environment = try Environment.open(at: directory.file("env"))
        let table = try environment.table("t", key: UInt64Codec.self, value: BytesCodec.self)
        let value = [UInt8](repeating: 1, count: 1_000)
        try environment.write { transaction in
          for key in UInt64(0)..<16_000 { try transaction.put(value, for: key, in: table) }
        }
        try environment.close()
      }
      func faultCount() -> Int {
        var usage = rusage()
        getrusage(1, &usage)  // RUSAGE_THREAD
        return usage.ru_minflt + usage.ru_majflt
      }
      func scanFaultCount(warm: Bool) throws -> (faults: Int, entries: Int, asked: Int) {
        let environment = try Environment.open(at: directory.file("env"))
        let table = try environment.table("t", key: UInt64Codec.self, value: BytesCodec.self)
        let asked = warm ? try environment.warmUp() : 0
        let before = faultCount()
        let entries = try environment.read { transaction in
          var entries = 0
          try transaction.scan(table) { _, value in
            entries += value.byteCount == 1_000 ? 1 : 0
            return .next
          }
          return entries
        }
        let faults = faultCount() - before
        try environment.close()
        return (faults, entries, asked)
      }
      let cold = try scanFaultCount(warm: false)
      let warm = try scanFaultCount(warm: true)
      #expect(cold.entries == 16_000)
      #expect(warm.entries == 16_000)
      #expect(warm.asked > 16_000_000)
      // A fault maps up to 16 pages around it; the file has 5,000 and more.
      #expect(cold.faults > 200)
      #expect(warm.faults * 4 < cold.faults, "\(warm.faults) of \(cold.faults)")
    }
  #endif

  @Test("asks for nothing where there is nothing")
  func empty() throws {
    let directory = try TemporaryDirectory()
    let environment = try Environment.open(at: directory.file("env"))
    #expect(try environment.warmUp() == 0)
  }
}

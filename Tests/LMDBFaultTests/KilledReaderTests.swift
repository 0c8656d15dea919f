import Foundation
import LMDB
import Testing

@Suite("A reader that is killed while it holds a snapshot", .ownThread)
struct KilledReaderTests {
  static let waveCount = 25
  static let readersPerWave = 20

  @Test("gives its slot back and lets the file be reused, 500 times")
  func killed() throws {
    let scratch = try Scratch(inMemory: true)
    let path = scratch.file("env")
    var configuration = Environment.Configuration()
    configuration.mapSizeByteCount = 4 << 20
    // Fewer slots than readers in three waves.
    configuration.readerCountMax = 50
    let environment = try Environment.open(at: path, configuration: configuration)
    let table = try environment.table("t", key: UInt64Codec.self, value: BytesCodec.self)
    func rewrite(_ byte: UInt8) throws {
      for part in 0..<UInt64(4) {
        try environment.write { transaction in
          for key in part * 50..<(part + 1) * 50 {
            try transaction.put([UInt8](repeating: byte, count: 1_000), for: key, in: table)
          }
        }
      }
    }
    try rewrite(0)
    var usedMax = 0
    for wave in 1...Self.waveCount {
      let readers = try (0..<Self.readersPerWave).map { _ in try FaultChild(["session"]) }
      for reader in readers { reader.send("open \(path)") }
      for reader in readers { #expect(try reader.readLine() == "ok") }
      for reader in readers { try reader.expect("hold", "ok", "wave \(wave)") }
      // Every one has its snapshot; the writer goes on, and so the pages of it pile up.
      try rewrite(UInt8(wave))
      for reader in readers { reader.kill() }
      for reader in readers { #expect(reader.wait() == .signal(SIGKILL)) }
      try rewrite(UInt8(wave))
      usedMax = max(usedMax, try environment.statistics().usedByteCount)
    }
    let numbers = try environment.statistics()
    print("killed readers: \(Self.waveCount * Self.readersPerWave), \(usedMax) bytes used at most")
    #expect(numbers.readerSlotCount <= 50)
    // 200 KB of records, rewritten 50 times: 10 MB if nothing were given back.
    #expect(usedMax < 6 << 20)
    try environment.close()
    try FaultChild(["session"]).expect("intact \(path)", "ok intact")
    #expect(try FaultChild(["session"]).ask("use \(path)") == "ok 200 200")
  }
}

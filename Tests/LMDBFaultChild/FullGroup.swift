import Foundation
import LMDB

/// `group PATH CALLERS SIZE ROUNDS`: as many concurrent writers, each storing one record per round;
/// says `committed KEY` or the error of each, whatever the disk does meanwhile, and `ok` at the end.
///
/// After a round it waits for a line, so that the test can fill and empty the disk in between.
struct FullGroup {
  let path: String
  let callerCount: Int
  let size: Int
  let roundCount: Int

  init(_ words: ArraySlice<String>) throws {
    path = try words.word(0)
    callerCount = try words.number(1)
    size = try words.number(2)
    roundCount = try words.number(3)
  }

  func run() throws {
    let environment = try Environment.open(at: path)
    let table = try environment.table("t", key: UInt64Codec.self, value: BytesCodec.self)
    say("ready")
    for round in 0..<UInt64(roundCount) {
      _ = readLine()
      let before = environment.commitCount
      try waitFor { [callerCount, size] in
        await withTaskGroup(of: Void.self) { group in
          for caller in 0..<UInt64(callerCount) {
            group.addTask {
              let key = round * 10_000 + caller
              do {
                // Each a little larger: only some of a group may fit.
                let value = [UInt8](repeating: UInt8(truncatingIfNeeded: key), count: size)
                try await environment.write { try $0.put(value, for: key, in: table) }
                say("committed \(key)")
              } catch {
                say("refused \(key) \(describe(error))")
              }
            }
          }
        }
      }
      say("round \(environment.commitCount - before)")
    }
  }
}

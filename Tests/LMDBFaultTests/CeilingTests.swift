import Foundation
import Testing

@Suite("A map at its ceiling", .ownThread)
struct CeilingTests {
  @Test("the map at its ceiling: reads and deletes go on, and all goes on under a higher one")
  func ceiling() throws {
    let scratch = try Scratch(inMemory: true)
    let path = scratch.file("env")
    let session = try FaultChild(["session"])
    let ceiling = 2 << 20
    try session.expect("open \(path) map=65536 ceiling=\(ceiling)")
    let answer = try session.ask("put 0 10000 300")
    #expect(answer.hasPrefix("mapFull "), "\(answer)")
    try session.expect("map", "ok \(ceiling)")
    let filled = try #require(
      try session.ask("count").split(separator: " ").last.flatMap { Int($0) })
    #expect(filled * 300 > ceiling / 2)
    try session.expect("scan", "ok \(filled)")
    // From the front, the back and the middle, one by one.
    try session.expect("delete 0 200")
    try session.expect("delete \(filled - 200) 200")
    try session.expect("delete \(filled / 2) 200")
    try session.expect("count", "ok \(filled - 600)")
    try session.expect("put 0 100 300")
    try session.expect("put 20000 10000 300", "mapFull", prefix: true)
    try session.expect("deleteAll")
    try session.expect("put 0 100 300")
    try session.expect("close")
    try session.expect("open \(path) ceiling=\(ceiling * 8)")
    try session.expect("count", "ok 100")
    try session.expect("put 1000 1000 3000")
  }
}

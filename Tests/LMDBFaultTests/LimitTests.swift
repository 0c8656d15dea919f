import Foundation
import LMDB
import Testing

@Suite("A limit of the process or the environment", .ownThread)
struct LimitTests {
  let scratch: Scratch
  let session: FaultChild

  init() throws {
    scratch = try Scratch(inMemory: true)
    session = try FaultChild(["session"])
  }

  private var path: String { scratch.file("env") }

  @Test("no descriptor left: outOfResources, and opens when there are some")
  func descriptors() throws {
    try session.expect("limit descriptors 64")
    for left in 0..<4 {
      try session.expect("descriptors \(left)")
      let answer = try session.ask("open \(path)")
      #expect(answer == "ok" || answer.hasPrefix("outOfResources "), "\(left) left")
      if left == 0 { #expect(answer.hasPrefix("outOfResources ")) }
      try session.expect("noDescriptors")
      try session.expect("open \(path)")
      try session.expect("put \(left) 1 100")
      try session.expect("count", "ok \(left + 1)")
      try session.expect("close")
    }
  }

  @Test("no address space left: outOfResources at open and when growing, nothing lost")
  func addressSpace() throws {
    try session.expect("open \(path) map=1048576")
    try session.expect("put 0 200 1000")
    try session.expect("limit space 700000000")
    // The map doubles until the next size does not fit any more.
    let answer = try session.ask("put 1000 400 5000000")
    #expect(answer.hasPrefix("outOfResources "), "\(answer)")
    // Usable as it is: the map stays as large as it was.
    try session.expect("get 0", "ok 1000")
    try session.expect("put 10 1 1000")
    try session.expect("close")
    try session.expect("open \(path) map=4000000000", "outOfResources", prefix: true)
    try session.expect("limit space none")
    try session.expect("open \(path) map=4000000000")
    try session.expect("put 5000 40 5000000")
  }

  @Test("no reader slot left: readersFull, and reads when a reader has ended")
  func readerSlots() throws {
    try session.expect("open \(path) readers=3")
    try session.expect("put 0 5 100")
    var held = 0
    while held < 10, try session.ask("hold") == "ok" { held += 1 }
    #expect((2...3).contains(held))
    try session.expect("hold", "readersFull", prefix: true)
    // Writers need no slot.
    try session.expect("put 10 5 100")
    let other = try FaultChild(["session"])
    // Opening finds the table by reading.
    try other.expect("open \(path) readers=100", "readersFull", prefix: true)
    // A reader that has ended makes room for the next of its process, and with that for all.
    try session.expect("release")
    try session.expect("hold")
    try session.expect("release")
    try session.expect("close")
    try other.expect("open \(path) readers=100")
    try other.expect("count", "ok 10")
  }

  @Test("no table left: tablesFull, and the environment goes on")
  func tables() throws {
    try session.expect("open \(path) tables=4")
    try session.expect("tables 10", "tablesFull", prefix: true)
    try session.expect("put 0 5 100")
    try session.expect("close")
    try session.expect("open \(path) tables=20")
    try session.expect("tables 10")
    try session.expect("count", "ok 5")
  }
}

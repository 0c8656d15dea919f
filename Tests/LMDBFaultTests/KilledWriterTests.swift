import Foundation
import Testing

@Suite("A writer that is killed at a random moment", .ownThread)
struct KilledWriterTests {
  /// Rounds of one writer of each kind, on the disk and in memory: 200 in all.
  static let roundCount = 50

  @Test(
    "has stored all that it was told of and nothing by halves, 200 rounds",
    arguments: [1, 24], [false, true])
  func killed(streamCount: Int, inMemory: Bool) throws {
    let scratch = try Scratch(inMemory: inMemory)
    var seed = FaultSeed(UInt64(streamCount) * 2 + (inMemory ? 1 : 0))
    var expected = Acknowledged(streamCount: streamCount)
    var committed = 0
    for round in 0...Self.roundCount {
      // A new environment now and then, so that its making is interrupted too.
      if round % 10 == 0, round < Self.roundCount {
        expected = Acknowledged(streamCount: streamCount)
      }
      let path = scratch.file("env\(min(round, Self.roundCount - 1) / 10)")
      // The last round only looks.
      let isLast = round == Self.roundCount
      let child = try FaultChild(["commit", path, "\(isLast ? 0 : streamCount)"])
      if !isLast {
        let isEarly = round % 10 == 0 || seed.next() % 5 == 0
        if !isEarly {
          try expected.expectState(from: child, round: round)
          // So many commits and a moment, whatever the disk takes for one.
          try expected.take(Int(seed.next() % 15), from: child, round: round)
        }
        usleep(UInt32(seed.next() % 10_000))
        child.kill()
      }
      for line in try child.readLines() { try expected.take(line, round: round) }
      #expect(child.wait() == (isLast ? .exited(0) : .signal(SIGKILL)), "round \(round)")
      committed += expected.endRound()
    }
    #expect(committed > Self.roundCount, "the rounds hardly wrote")
    print("killed writer: \(Self.roundCount) rounds, \(streamCount) streams, \(committed) commits")
  }
}

/// What each stream was told of, and what must be found afterwards.
private struct Acknowledged {
  struct Unexpected: Error {
    let line: String
    let round: Int
  }

  let streamCount: Int
  private var told: [Int: Int] = [:]
  private var found: [Int: Int] = [:]
  private var isChecked = false
  private var commitCount = 0

  init(streamCount: Int) { self.streamCount = streamCount }

  /// Reads up to the end of the child's own check.
  mutating func expectState(from child: FaultChild, round: Int) throws {
    while !isChecked {
      guard let line = try child.readLine() else {
        throw Unexpected(line: "ended: \(child.wait())", round: round)
      }
      try take(line, round: round)
    }
  }

  /// Reads that many acknowledgements.
  mutating func take(_ count: Int, from child: FaultChild, round: Int) throws {
    for _ in 0..<count {
      guard let line = try child.readLine() else { return }
      try take(line, round: round)
    }
  }

  mutating func take(_ line: String, round: Int) throws {
    let words = line.split(separator: " ")
    let numbers = words.dropFirst().compactMap { Int($0) }
    switch words.first {
    case "state": found[numbers[0]] = numbers[1]
    case "checked":
      isChecked = true
      for stream in 0..<streamCount {
        let last = found[stream, default: 0]
        let acknowledged = told[stream, default: 0]
        // The commit that ran when it was killed may have come through untold: one per stream.
        #expect(
          (acknowledged...acknowledged + 1).contains(last),
          "round \(round), stream \(stream): \(last) found, \(acknowledged) acknowledged")
        told[stream] = last
      }
    case "done":
      #expect(numbers[1] == told[numbers[0], default: 0] + 1, "round \(round): \(line)")
      told[numbers[0]] = numbers[1]
      commitCount += 1
    default: throw Unexpected(line: line, round: round)
    }
  }

  /// - Returns: how many commits were acknowledged in it.
  mutating func endRound() -> Int {
    defer {
      commitCount = 0
      isChecked = false
      found = [:]
    }
    return commitCount
  }
}

import Foundation
import SyncTestSupport
import Testing

/// What came of opening and using a store that was changed at one place after the other.
private struct Outcomes {
  var counts: [String: Int] = [:]
  /// How many places were tried.
  var count: Int { counts.values.reduce(0, +) }
  /// The places whose outcome was none that may be.
  var findings: [String] = []

  /// Lets children do it, a new one behind each that died.
  init(_ words: [String], allowing allowed: Set<String>) async throws {
    let directory = try StoreDirectory()
    var (next, count) = (0, Int.max)
    while next < count {
      let child = try ChildProgram(
        "crash-child", ["read", directory.store.path, "count", "0"] + words + ["\(next)"])
      let lines = await child.lines()
      let ending = try await child.end()
      var place = ""
      for line in lines {
        let words = line.split(separator: " ", maxSplits: 2).map(String.init)
        switch words[0] {
        case "places": count = Int(words[1]) ?? 0
        case "at":
          place = line
          next = (Int(words[1]) ?? 0) + 1
        case "ok", "changed", "foreign", "error":
          counts[words[0], default: 0] += 1
          if !allowed.contains(words[0]) || line.hasPrefix("error untyped") {
            findings.append("\(place): \(line)")
          }
          place = ""
        default: break
        }
      }
      if lines.last == "done" { break }
      try #require(!place.isEmpty, "the child ended by itself: \(lines.suffix(3))")
      counts["died", default: 0] += 1
      findings.append("\(place): \(ending)")
    }
  }
}

@Suite("A small store that was damaged while nobody had it open")
struct DamagedStoreTests {
  private static let seed = UInt64.random(in: 1...999_999)

  @Test("one bit at a time, on every page: an error or an unchanged answer")
  func flips() async throws {
    let outcomes = try await Outcomes(
      ["sealed", "flips", "\(Self.seed)"], allowing: ["ok", "error"])
    print("bit flips: \(outcomes.count) of sealed files, seed \(Self.seed): \(outcomes.counts)")
    #expect(outcomes.findings == [], "seed \(Self.seed)")
    #expect(outcomes.counts["error"] ?? 0 > 200)
  }

  @Test("the same after a kill, which leaves no sums: no crash, and nothing of another account")
  func flipsAfterKill() async throws {
    let outcomes = try await Outcomes(
      ["unsealed", "flips", "\(Self.seed)"], allowing: ["ok", "error", "changed"])
    print("bit flips: \(outcomes.count) after a kill, seed \(Self.seed): \(outcomes.counts)")
    #expect(outcomes.findings == [], "seed \(Self.seed)")
    #expect(outcomes.counts["error"] ?? 0 > 50)
  }

  @Test("cut at any page, or a byte beside it: an error or an unchanged answer")
  func cuts() async throws {
    let outcomes = try await Outcomes(["unsealed", "cuts", "0"], allowing: ["ok", "error"])
    print("cut files: \(outcomes.count), \(outcomes.counts)")
    #expect(outcomes.findings == [])
    #expect(outcomes.counts["error"] ?? 0 > 40)
  }
}

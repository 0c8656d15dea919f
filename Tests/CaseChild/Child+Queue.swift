import Foundation
import HubProtocol
import ProfileStore

extension Child {
  /// `queue COUNT`: fills the outbox and says what that cost at the beginning and at the end. With 0
  /// it only opens it, and says what that cost.
  func fillQueue() async throws {
    let count = try number(0)
    let (registry, account) = try await openStore(keeping: .app)
    let faults = Self.pageFaultCount()
    let profile = try await registry.profile(for: account)
    say("pending \(try profile.pendingSummary().count)")
    say("faults \(Self.pageFaultCount() - faults)")
    say("memory \(try Self.anonymousByteCount())")
    if count == 0 { return }
    var next = 0
    func fill(to end: Int) async throws {
      while next < end {
        let batch = (next..<min(next + 1_000, end)).map {
          Mutation.put(RecordID("r\($0)"), Data("payload \($0)".utf8))
        }
        try await profile.enqueue(batch, account: account)
        next += batch.count
      }
    }
    try await fill(to: 1_000)
    say("early \(try await bytesOfOneEnqueue(account, profile, "early"))")
    try await fill(to: count)
    say("late \(try await bytesOfOneEnqueue(account, profile, "late"))")
    say("filled \(try Self.anonymousByteCount())")
  }

  private static func pageFaultCount() -> Int {
    var usage = rusage()
    getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
    return usage.ru_minflt + usage.ru_majflt
  }

  /// Bytes that this process gave the kernel to write for each of 50 enqueues.
  private func bytesOfOneEnqueue(
    _ account: VerifiedAccount, _ profile: Profile, _ prefix: String
  ) async throws -> Int {
    let before = try Self.writtenByteCount()
    for number in 0..<50 {
      try await profile.enqueue(
        .put(RecordID("\(prefix)\(number)"), Data("payload".utf8)), account: account)
    }
    return (try Self.writtenByteCount() - before) / 50
  }

  private static func writtenByteCount() throws -> Int {
    try number("wchar:", in: "/proc/self/io")
  }

  private static func anonymousByteCount() throws -> Int {
    try number("RssAnon:", in: "/proc/self/status") << 10
  }

  private static func number(_ name: String, in file: String) throws -> Int {
    let text = try String(contentsOfFile: file, encoding: .utf8)
    for line in text.split(separator: "\n") where line.hasPrefix(name) {
      let word = line.dropFirst(name.count).split(whereSeparator: \.isWhitespace).first
      if let number = word.flatMap({ Int($0) }) { return number }
    }
    throw BadWords()
  }
}

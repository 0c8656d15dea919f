import Foundation
import HubProtocol
import ProfileStore
import SyncTestSupport
import Testing

/// A story that `crash-child` tells, again and again: once to count its steps, then once for each of
/// them, where the process is killed or the disk becomes full.
struct CrashStory {
  enum Action: String { case count, kill, fill }

  /// What one child has said, and how it ended.
  struct Telling {
    let directory: StoreDirectory
    let lines: [String]
    let ending: ChildProgram.Ending
    /// The step at which it ended or ran out of room.
    var step: String { lines.last { $0.hasPrefix("step ") } ?? "no step" }
    var isDone: Bool { lines.contains("done") }
    var failure: String? { lines.first { $0.hasPrefix("failed ") } }

    /// What stands behind a word at the beginning of lines.
    func said(_ word: String) -> [String] {
      lines.filter { $0.hasPrefix(word + " ") }.map { String($0.dropFirst(word.count + 1)) }
    }

    func registry(
      keeping recordKeeping: ProfileRegistry.RecordKeeping = .area,
      session: AppSession = AppSession()
    ) throws -> ProfileRegistry {
      if case .unknown = session.state { session.signOut() }
      return try ProfileRegistry(
        directory: directory.store, session: session,
        configuration: .init(recordKeeping: recordKeeping))
    }
  }

  let name: String
  var words: [String] = []

  init(_ name: String, _ words: [String] = []) {
    self.name = name
    self.words = words
  }

  /// Tells it once.
  func tell(_ action: Action, at place: Int = 0, on disk: SmallDisk? = nil) async throws -> Telling
  {
    let directory = try StoreDirectory(on: disk)
    let child = try ChildProgram(
      "crash-child", [name, directory.store.path, action.rawValue, "\(place)"] + words)
    let lines = await child.lines()
    return Telling(directory: directory, lines: lines, ending: try await child.end())
  }

  /// The steps of the whole story.
  func steps(on disk: SmallDisk? = nil) async throws -> [String] {
    let whole = try await tell(.count, on: disk)
    try #require(whole.isDone, "\(name): \(whole.lines.suffix(3))")
    return whole.said("step")
  }

  /// Kills it at each of its steps and looks at what is left each time.
  /// - Parameter atLeast: fewer steps would say that they are not seen any more.
  func killAtEach(atLeast: Int, _ check: (Telling) async throws -> Void) async throws {
    let steps = try await steps()
    #expect(steps.count >= atLeast, "\(name): \(steps)")
    var killed = 0
    for place in 1...steps.count {
      let telling = try await tell(.kill, at: place)
      // Tasks of a pass may share a commit in one run and not in another.
      if telling.ending == .exited(0), telling.isDone, place > steps.count * 3 / 4 { continue }
      #expect(telling.ending == .signal(SIGKILL), "\(name), \(steps[place - 1]): \(telling.lines)")
      killed += 1
      try await check(telling)
    }
    print("kills: \(killed) of \(name), at \(steps.count) steps")
  }

  /// Lets the disk run full at each of its steps, and looks at what is left once there is room again.
  ///
  /// A child goes on after that, and says what failed: a typed error, for want of room.
  /// - Parameter refuses: whether something must be refused: what takes room, and finds none that was
  ///   kept ready in the file.
  func fillAtEach(
    _ disk: SmallDisk, atLeast: Int, refuses: Bool = true,
    _ check: (Telling) async throws -> Void
  ) async throws {
    let steps = try await steps(on: disk)
    #expect(steps.count >= atLeast, "\(name): \(steps)")
    var refused = 0
    for place in 1...steps.count {
      let telling = try await tell(.fill, at: place, on: disk)
      #expect(telling.ending == .exited(0), "\(name), \(steps[place - 1]): \(telling.lines)")
      unlink(telling.directory.url.appending(path: "ballast").path)
      for failure in telling.said("failed") + telling.said("refused") {
        refused += 1
        #expect(
          failure.contains("diskFull") || failure.contains("No space left"),
          "\(name), \(telling.step): \(failure)")
      }
      #expect(refuses || telling.isDone, "\(name), \(telling.step): \(telling.lines)")
      try await check(telling)
    }
    print("full disks: \(steps.count) of \(name), \(refused) calls refused")
    #expect(refused > 0 || !refuses)
  }
}

/// An account as the hub has just verified it, of the hub that the child's accounts are of.
func verified(_ name: String) throws -> VerifiedAccount {
  VerifiedAccount(
    hub: UUID(uuid: (1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)), id: try AccountID(name),
    proof: .hub(ClientTicket(client: UUID())))
}

extension ProfileRegistry {
  /// Every area can be read and is sound, and nothing of one account lies in the directory of another.
  /// - Parameter foreign: canaries that may lie in the area of an account beside its own.
  func requireSound(_ telling: CrashStory.Telling, foreign: [String: [String]] = [:]) async throws {
    let leftovers = try await settled {
      try FileManager.default.subpathsOfDirectory(atPath: directory.path).filter {
        $0.hasSuffix(".making") || $0.hasSuffix(".erased")
      }
    } until: {
      $0.isEmpty
    }
    #expect(leftovers == [], "\(telling.step): half made or half removed")
    for info in try await profiles() {
      #expect(info.failure == nil, "\(telling.step): \(info.state) \(info.problem ?? "")")
      guard ![.erased, .missing, .unreadable].contains(info.state) else { continue }
      let area = try open(info.area)
      #expect(try area.violations() == [], "\(telling.step)")
      let owner = info.owner?.id.text ?? "guest"
      for other in ["ada", "bob", "guest"]
      where other != owner && foreign[owner]?.contains(other) != true {
        #expect(
          try files(under: area.directory, with: "canary-\(other)") == 0,
          "\(telling.step): the area of \(owner) holds something of \(other)")
      }
    }
    let intents = try index.snapshot().intents
    // A freeze waits for the account that has begun it; nothing else is left open.
    #expect(intents.values.allSatisfy { $0.kind == .adopt }, "\(telling.step): \(intents)")
  }

  /// What a look finds once what was begun is settled.
  ///
  /// A process that some other test is just starting holds a copy of every file lock of this one for a
  /// moment: what could not be removed then goes at the next call.
  func settled<R>(_ look: () throws -> R, until isSettled: (R) -> Bool) async throws -> R {
    for _ in 0..<200 {
      try await locked {}
      let found = try look()
      if isSettled(found) { return found }
      try await Task.sleep(for: .milliseconds(10))
    }
    return try look()
  }

  /// The accounts of all areas, in the order of their names.
  func owners() async throws -> [String] {
    try await profiles().compactMap { $0.owner?.id.text }.sorted()
  }
}

import Foundation
import HoldfastTesting
import HubProtocol
import ProfileStore
import ProfileSync
import Testing

@Suite("The audit of an apply closure", .timeLimit(.minutes(5)))
struct ApplyChangesAuditTests {
  /// In memory where there is such a place: what is audited does not depend on it.
  private static let options = {
    var options = ApplyChangesAudit.Options()
    let memory = URL(filePath: "/dev/shm", directoryHint: .isDirectory)
    if FileManager.default.isWritableFile(atPath: memory.path) { options.directory = memory }
    return options
  }()

  private func audit(
    _ fault: NotesApp.Fault, showsEdits: Bool = true
  ) async throws -> AuditReport {
    try await ApplyChangesAudit(Self.options) { directory in
      try NotesApp(in: directory, fault).audited(showsEdits: showsEdits)
    }.run()
  }

  @Test("finds nothing where there is nothing, and has tried everything")
  func right() async throws {
    let report = try await audit(.none)
    #expect(report.findings.isEmpty, "\(report)")
    #expect(report.passed == AuditSituation.allCases)
    #expect(report.skipped == [])
  }

  @Test("needs nothing but the closure and the contents")
  func least() async throws {
    let report = try await ApplyChangesAudit(Self.options) { directory in
      let app = try NotesApp(in: directory, .none).audited()
      return AuditedApp(applyChanges: app.applyChanges, contents: app.contents)
    }.run()
    #expect(report.findings.isEmpty, "\(report)")
    #expect(report.skipped.map(\.situation) == [.pendingDelete, .position])
  }

  /// What an app with one fault is told. Every situation stands alone somewhere.
  private static let faults: [(NotesApp.Fault, showsEdits: Bool, [AuditSituation])] = [
    (.insertsOnly, true, [.ordinary]),
    (.refusesWhatItHasSeen, true, [.sameBatchTwice]),
    (.savesRowByRow, true, [.throwHalfWay]),
    (.asksFirstAndSavesRowByRow, true, [.throwHalfWay]),
    (.hidesFailures, true, [.throwHalfWay, .wrongDocument]),
    (.staysBroken, true, [.throwHalfWay]),
    (.leavesWhenCancelled, true, [.cancellation]),
    (.trustsItsMemory, true, [.crashBeforeCommit]),
    (.savesLater, true, [.crashAfterCommit]),
    (.savesForWhoIsSignedIn, true, [.accountSwitch]),
    (.believesTheProfile, true, [.wrongDocument]),
    (.keysByRecordAlone, true, [.sameIDsInTwoAccounts]),
    (.asksAboutItsRows, false, [.pendingEdit]),
    (.asksAboutItsRowsAndShowsEdits, true, [.pendingDelete]),
    (.asksTheChangeAlone, false, [.editDuringClosure]),
    (.takesParked, true, [.parkedEdit]),
    (
      .asksAboutNothing, true,
      [.pendingEdit, .editDuringClosure, .parkedEdit, .pendingDelete, .replay]
    ),
    (.buriesForEver, true, [.tombstone]),
    (
      .ignoresDeletions, true,
      [
        .sameIDsInTwoAccounts, .tombstone, .inferredDeletion, .replay, .equivalentIDs,
      ]
    ),
    (.needsRowsToDelete, true, [.unknownTombstone]),
    (.wantsTombstones, true, [.inferredDeletion]),
    (.believesReplays, true, [.replay]),
    (.clearsInReplays, true, [.inferredDeletion, .replay, .emptyBatch]),
    (.takesOnlyNewer, true, [.newEpoch]),
    (.leavesOutWhatItHasSeen, true, [.equalVersion]),
    (.keepsPositionsElsewhere, true, [.restoredStore]),
    (.keepsPositionsInMemory, true, [.position]),
    (.savesNoPosition, true, [.restoredStore, .position, .emptyBatch]),
    (.failsWithoutChanges, true, [.emptyBatch]),
    (.skipsWithoutChanges, true, [.emptyBatch]),
    (.takesEmptyForDeleted, true, [.emptyPayload]),
    (.keysByText, true, [.equivalentIDs]),
  ]

  @Test("finds each fault, and that one alone", arguments: faults)
  func wrong(
    fault: NotesApp.Fault, showsEdits: Bool, situations: [AuditSituation]
  ) async throws {
    let report = try await audit(fault, showsEdits: showsEdits)
    #expect(report.findings.map(\.situation) == situations, "\(report)")
    for finding in report.findings {
      #expect(!finding.expected.isEmpty && !finding.observed.isEmpty)
      // No payload of the audit's, and so none of an app's.
      #expect(!finding.description.contains("audit payload"))
      #expect(finding.description.contains(finding.remedy))
      #expect(report.description.contains(finding.description))
    }
  }

  @Test("has a fault that is found in each situation, and in no other")
  func complete() {
    let alone = Self.faults.map(\.2).filter { $0.count == 1 }.map { $0[0] }
    #expect(Set(alone) == Set(AuditSituation.allCases))
    #expect(Set(Self.faults.map(\.0)) == Set(NotesApp.Fault.allCases).subtracting([.none]))
  }

  @Test("says of an app that is of no use after a failed write that it cannot go on")
  func staysBroken() async throws {
    let finding = try #require(try await audit(.staysBroken).findings.first)
    #expect(finding.observed == "it cannot go on after a failed write: it threw Refused")
    #expect(finding.contract == "5.4")
    #expect(finding.remedy.contains("roll it back"))
  }

  /// A report on some situations of an app that the test has changed.
  private func audit(
    _ situations: Set<AuditSituation>, _ fault: NotesApp.Fault,
    _ change: @escaping (inout AuditedApp) -> Void
  ) async throws -> AuditReport {
    var options = Self.options
    options.situations = situations
    return try await ApplyChangesAudit(options) { directory in
      var app = try NotesApp(in: directory, fault).audited()
      change(&app)
      return app
    }.run()
  }

  @Test("comes to an end with an app whose writes fail whatever their number")
  func failsAtAnyNumber() async throws {
    let report = try await audit([.throwHalfWay], .none) { app in
      let failWrite = app.failWrite
      app.failWrite = { number, place in try await failWrite?(number.map { _ in 1 }, place) }
    }
    #expect(report.findings.isEmpty, "\(report)")
    #expect(report.passed == [.ordinary])
    let skipped = report.skipped.first { $0.situation == .throwHalfWay }
    #expect(skipped?.reason.contains("`failWrite`") == true)
  }

  @Test("has not tried what never came about: no failure without a place for one")
  func noPlaceToFail() async throws {
    let situations: Set = [AuditSituation.throwHalfWay, .cancellation, .accountSwitch]
    let with = try await audit(situations, .asksAboutNothing) { _ in }
    #expect(with.passed == [.ordinary, .throwHalfWay, .cancellation, .accountSwitch], "\(with)")
    let without = try await audit(situations, .asksAboutNothing) { $0.failWrite = nil }
    #expect(without.findings.isEmpty, "\(without)")
    #expect(without.passed == [.ordinary, .cancellation, .accountSwitch])
    let idle = try await audit(situations, .asksAboutNothing) { $0.failWrite = { _, _ in } }
    #expect(idle.passed == without.passed)
    for report in [without, idle] {
      let skipped = report.skipped.first { $0.situation == .throwHalfWay }
      #expect(skipped?.reason.contains("`isPending`") == true)
    }
  }

  @Test("has not tried what never came about: no cancellation where nothing is asked")
  func asksOutOfSight() async throws {
    let report = try await audit([.throwHalfWay, .cancellation, .accountSwitch], .none) { app in
      let apply = app.applyChanges
      // Another watcher takes the place of the audit's.
      app.applyChanges = { batch, place in try await apply(batch.watched { _ in }, place) }
      app.failWrite = nil
    }
    #expect(report.findings.isEmpty, "\(report)")
    #expect(report.passed == [.ordinary, .accountSwitch])
  }

  @Test("tries nothing else on an app that does not take an ordinary batch")
  func insertsOnly() async throws {
    let report = try await audit(.insertsOnly)
    #expect(report.passed == [])
    #expect(report.skipped.count == AuditSituation.allCases.count - 1)
  }

  @Test("leaves out what it is told to, but for the ordinary batch")
  func leftOut() async throws {
    var options = Self.options
    options.situations = [.emptyPayload]
    let report = try await ApplyChangesAudit(options) { directory in
      try NotesApp(in: directory, .takesEmptyForDeleted).audited()
    }.run()
    #expect(report.passed == [.ordinary])
    #expect(report.findings.map(\.situation) == [.emptyPayload])
    #expect(report.skipped.count == AuditSituation.allCases.count - 2)
  }

  @Test("takes payloads of the app's own, and an app that writes them in another form")
  func payloads() async throws {
    struct Note: Codable, Equatable {
      var text: String
      var number: Int
    }
    @Sendable func note(_ data: Data) throws -> Note? {
      data.isEmpty ? nil : try JSONDecoder().decode(Note.self, from: data)
    }
    var options = Self.options
    options.payload = { number in Data(#"{"number": \#(number), "text": "a note"}"#.utf8) }
    options.isSame = { payload, shown in
      // Neither is a note: then only the bytes can say it.
      do { return try note(payload) == note(shown) } catch { return payload == shown }
    }
    let report = try await ApplyChangesAudit(options) { directory in
      let app = try NotesApp(in: directory, .none).audited()
      var other = app
      other.contents = { place in
        try await app.contents(place).mapValues { payload in
          guard let note = try note(payload) else { return payload }
          let encoder = JSONEncoder()
          encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
          return try encoder.encode(note)
        }
      }
      return other
    }.run()
    #expect(report.findings.isEmpty, "\(report)")
    #expect(report.passed == AuditSituation.allCases)
  }

  @MainActor
  @Test("runs where its caller runs: an app of the main actor needs no Sendable")
  func mainActor() async throws {
    let report = try await ApplyChangesAudit(Self.options) { directory in
      MainActor.preconditionIsolated()
      var app = try NotesApp(in: directory, .none).audited()
      let apply = app.applyChanges
      app.applyChanges = { batch, place in
        MainActor.preconditionIsolated()
        try await apply(batch, place)
      }
      return app
    }.run()
    #expect(report.findings.isEmpty, "\(report)")
  }

  @Test("ends when its task is cancelled, and says nothing of the app then")
  func cancelled() async throws {
    let task = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return try await audit(.none)
    }
    await #expect(throws: CancellationError.self) { try await task.value }
  }

  @Test("throws what keeps the app from its first launch")
  func noLaunch() async throws {
    await #expect(throws: NotesApp.Refused.self) {
      try await ApplyChangesAudit(Self.options) { _ in throw NotesApp.Refused() }.run()
    }
  }

  @Test("leaves no directory behind")
  func removed() async throws {
    var options = Self.options
    options.directory = options.directory.appending(
      path: "audit-\(UUID())", directoryHint: .isDirectory)
    try FileManager.default.createDirectory(
      at: options.directory, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: options.directory) }
    options.situations = [.crashAfterCommit, .emptyBatch]
    _ = try await ApplyChangesAudit(options) { directory in
      try NotesApp(in: directory, .failsWithoutChanges).audited()
    }.run()
    #expect(try FileManager.default.contentsOfDirectory(atPath: options.directory.path) == [])
  }
}

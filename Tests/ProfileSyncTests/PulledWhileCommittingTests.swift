import Dispatch
import Foundation
import HubProtocol
import HubServer
import LMDB
import ProfileStore
import ProfileSync
import SyncTestSupport
import Testing

/// Holds an area's writer, on a thread of its own, so that commits wait until it is let go.
private final class HeldWriter: Sendable {
  private let isInside = Gate()
  private let mayGo = DispatchSemaphore(value: 0)

  /// Comes back once the writer is held.
  func hold(_ area: Area) async {
    DispatchQueue.global().async { [isInside, mayGo] in
      do {
        try area.environment.writeBlocking { _ in
          isInside.open()
          mayGo.wait()
        }
      } catch { Issue.record("the writer could not be held: \(error)") }
    }
    await isInside.wait()
  }

  func letGo() { mayGo.signal() }
}

@Suite("Synchronize: pages that come while a commit runs, in a managed area")
struct PulledWhileCommittingTests {
  /// A device that has nothing yet of ten records, two in a page; `atPage` is told of each answer, the
  /// writer being held since before the first.
  private static func run(
    _ atPage: @escaping @Sendable (Int, Person, HeldWriter) async -> Void,
    _ body: (Person) async throws -> Void
  ) async throws {
    try await TestHub.run(HubLimits(pullRecords: 2)) { hub in
      let person = try await Device(hub).signIn()
      try await person.profile.synchronize(account: person.account)
      _ = try await Person.withRecords(hub, ids(1...10))
      let writer = HeldWriter()
      let pages = Log<Int>()
      person.device.wire.clear()
      person.device.wire.after { _, request, _ throws(TransportError) in
        guard request.call == .changes else { return }
        let page = pages.add(1)
        if page == 1 { await writer.hold(person.profile.area) }
        await atPage(page, person, writer)
      }
      try await body(person)
    }
  }

  @Test("are fetched meanwhile, and are there when the pass returns")
  func overlap() async throws {
    let cursors = Log<UInt64?>()
    try await Self.run({ page, person, writer in
      do { cursors.add(try person.profile.cursor()?.sequence) } catch {
        Issue.record("the area could not be read: \(error)")
      }
      if page == 5 { writer.letGo() }
    }) { person in
      let before = person.profile.area.environment.commitCount
      let report = try await person.profile.synchronize(account: person.account)
      #expect(cursors.entries == [0, 0, 0, 0, 0])
      #expect(report.pages == 5 && report.delivered == 10 && report.isComplete)
      #expect(try person.profile.cursor()?.sequence == 10)
      #expect(try Set(person.texts().keys) == Set(ids(1...10)))
      // One for the first page and one for the four others, beside what a pass notes of itself.
      #expect(person.profile.area.environment.commitCount - before <= 4)
    }
  }

  @Test("are not used once the session has changed, none of them")
  func session() async throws {
    try await Self.run({ page, person, writer in
      guard page == 3 else { return }
      person.device.session.signOut()
      writer.letGo()
    }) { person in
      await expect(.sessionChanged) {
        try await person.profile.synchronize(account: person.account)
      }
      // Records and cursor are committed together; the handle of who signed out reads none.
      let cursor = try person.profile.area.facts().cursor
      #expect(cursor?.sequence == 0)
    }
  }

  @Test("are dropped when the pass is cancelled, but for the commit that had begun")
  func cancelled() async throws {
    let task = Log<Task<SyncReport, any Error>>()
    let isStarted = Gate()
    try await Self.run({ page, _, writer in
      guard page == 3 else { return }
      await isStarted.wait()
      task.entries.first?.cancel()
      writer.letGo()
    }) { person in
      task.add(Task { try await person.profile.synchronize(account: person.account) })
      isStarted.open()
      let result = await task.entries[0].result
      #expect(throws: CancellationError.self) { try result.get() }
      #expect(try person.profile.cursor()?.sequence == 2)
      #expect(try Set(person.texts().keys) == Set(ids(1...2)))
      person.device.wire.clear()
      try await person.profile.synchronize(account: person.account)
      #expect(try Set(person.texts().keys) == Set(ids(1...10)))
    }
  }

  @Test("are kept when a later request fails: the next pass goes on from there")
  func trouble() async throws {
    try await Self.run({ page, person, writer in
      guard page == 3 else { return }
      person.device.wire.before { _, request throws(TransportError) in
        request.call == .changes ? .made(503) : nil
      }
      writer.letGo()
    }) { person in
      await expect(.hubUnavailable) {
        try await person.profile.synchronize(account: person.account)
      }
      let standing = try person.standing()
      #expect(standing.cursor?.sequence == 6 && standing.records.map(\.id) == ids(1...6))
    }
  }
}

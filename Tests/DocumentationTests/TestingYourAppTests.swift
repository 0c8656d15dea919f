import DocumentationSupport
import Foundation
import Holdfast
import HoldfastTesting
import Testing

@testable import SQLiteNotes
@testable import Snippets

@Suite("Testing your app", .timeLimit(.minutes(5)))
struct TestingYourAppTests {
  private static let page = "\(PagesTests.catalogue)/TestYourApp.md"

  /// A device of the page's, in a directory that goes with it.
  private func withDevice(
    _ body: (MemoryHub, CuedSession, ProfileRegistry, VerifiedAccount, Profile) async throws -> Void
  ) async throws {
    try await withDirectory { directory in
      let (hub, session) = (MemoryHub(), CuedSession())
      let registry = try ProfileRegistry(directory: directory, session: session)
      registry.connect(to: session.watching(hub))
      let token = hub.token(for: "ada")
      let ada = try await registry.verify(token: token)
      let profile = try await registry.profile(for: ada)
      session.signIn(ada, token: token)
      try await body(hub, session, registry, ada, profile)
    }
  }

  private func withDirectory(_ body: (URL) async throws -> Void) async throws {
    let directory = FileManager.default.temporaryDirectory.appending(
      path: "testing-\(UUID())", directoryHint: .isDirectory)
    do { try await body(directory) } catch {
      try? FileManager.default.removeItem(at: directory)
      throw error
    }
    try FileManager.default.removeItem(at: directory)
  }

  @Test("what the page shows does what it says")
  func snippets() async throws {
    try await withDirectory { try await lostAnswer(directory: $0) }
    try await withDevice { hub, _, _, ada, profile in
      try await offlineForHours(profile: profile, ada: ada, hub: hub)
    }
    try await withDevice { hub, session, registry, ada, profile in
      try await switchDuringPush(
        registry: registry, profile: profile, ada: ada, session: session, hub: hub)
    }
    try await audit()
  }

  @Test("names each situation of the audit, with its sentence and section, and no other")
  func situations() throws {
    let page = try Repository.text(Self.page)
    let rows = page.captures(#/\n(\| `[a-z][A-Za-z]*` \| .* \|)/#)
    let wanted = AuditSituation.allCases.map {
      "| `\($0.rawValue)` | \($0.summary) | \($0.contract) |"
    }
    #expect(rows == wanted)
  }

  @Test("shows a finding as it is printed")
  func finding() async throws {
    // One table for whoever is signed in; the owner is taken from whoever synchronizes.
    var tables: [URL: [RecordID: Data]] = [:]
    let report = try await ApplyChangesAudit { directory in
      AuditedApp(
        applyChanges: { batch, place in
          var table = tables[directory] ?? [:]
          for change in try batch.changes(localOwner: place.account.bytes).copies() {
            if try batch.isPending(change.record) { continue }
            table[change.record] = change.payload
          }
          tables[directory] = table
        },
        contents: { _ in tables[directory] ?? [:] })
    }.run()
    #expect(
      report.findings.map(\.situation) == [.accountSwitch, .wrongDocument, .sameIDsInTwoAccounts])
    let shown = try Repository.text(Self.page).fencedBlocks.filter { $0.language == "text" }
    #expect(
      shown.map(\.content).contains { report.description.contains($0.dropLast()) }, "\(report)")
  }

  @Test("an app with an SQLite file has no finding")
  @MainActor
  func sqliteNotes() async throws {
    let report = try await ApplyChangesAudit { directory in
      let app = SQLiteApp(in: directory)
      return AuditedApp(
        applyChanges: { batch, place in try app.file(place).apply(batch) },
        contents: { place in try app.contents(place) },
        edit: { record, payload, place in try await app.edit(record, payload, place) },
        position: { place in try app.file(place).position() },
        accountChanged: { place in _ = try app.file(place) })
    }.run()
    #expect(report.findings.isEmpty, "\(report)")
    #expect(report.passed == AuditSituation.allCases)
  }

  /// One launch of the example `SQLiteNotes`, as far as it keeps notes.
  @MainActor
  private final class SQLiteApp {
    private let folder: URL
    private var files: [AreaID: NotesFile] = [:]

    init(in folder: URL) { self.folder = folder }

    func file(_ place: AuditedApp.Place) throws -> NotesFile {
      if let file = files[place.profile.id] { return file }
      let file = try NotesFile(
        in: folder, area: place.profile.id, owner: place.account.bytes)
      files[place.profile.id] = file
      return file
    }

    func contents(_ place: AuditedApp.Place) throws -> [RecordID: Data] {
      var contents: [RecordID: Data] = [:]
      for note in try file(place).notes() { contents[RecordID(note.id)] = Data(note.text.utf8) }
      return contents
    }

    func edit(_ record: RecordID, _ payload: Data?, _ place: AuditedApp.Place) async throws {
      let file = try file(place)
      try file.write(record.text, payload.map { String(decoding: $0, as: UTF8.self) })
      let changes = try file.waiting()
      try await place.profile.enqueue(changes.map(\.mutation), account: place.account)
      try file.strikeOff(changes)
      try await place.profile.strikeOff(changes.map(\.id), account: place.account)
    }
  }
}

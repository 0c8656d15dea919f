import Foundation
import Holdfast

/// An app with a store of its own: its notes are in SQLite, the area keeps outbox and cursor.
///
/// Each step that writes to one of the two stores is committed before the next one begins, so that a
/// crash between any two leaves something that the next launch, or the next sign-in, goes on with.
@MainActor
final class SyncedNotes {
  let folder: URL
  let session = AppSession()
  let registry: ProfileRegistry
  private(set) var profile: Profile
  private(set) var file: NotesFile
  private(set) var account: VerifiedAccount?

  /// Opens the notes of whoever was signed in when the app ended, or the signed-out ones.
  init(folder: URL, hub: URL, saved: (account: Data, token: String)? = nil) async throws {
    self.folder = folder
    registry = try ProfileRegistry(
      directory: folder.appending(path: "store", directoryHint: .isDirectory), session: session,
      hub: hub, configuration: ProfileRegistry.Configuration(recordKeeping: .app))
    session.restore(account: saved?.account, token: saved?.token)
    profile = try await registry.currentProfile()
    account = try profile.owner
    file = try NotesFile(in: folder, area: profile.id, owner: account?.bytes)
    try await enqueueWhatIsLeft()
    try await profile.strikeOff(allBut: [], account: account)
  }

  // MARK: Changing

  /// Changes or, with nil, deletes a note.
  func write(_ note: String, _ text: String?) async throws {
    try file.write(note, text)
    try await enqueueWhatIsLeft()
  }

  /// Brings every saved change into the outbox: after each change, at launch, before signing in.
  func enqueueWhatIsLeft() async throws {
    let changes = try file.waiting()
    if changes.isEmpty { return }
    try await profile.enqueue(changes.map(\.mutation), account: account)
    try file.strikeOff(changes)
    try await profile.strikeOff(changes.map(\.id), account: account)
  }

  // MARK: Synchronizing

  /// Sends what waits and applies what is new.
  func synchronize() async throws {
    guard let account else { return }
    try await enqueueWhatIsLeft()
    do {
      try await pass(account, replayFromStart: false)
    } catch let error as SyncError where error.code == .appStoreBehind {
      // The file is older than what was applied to it once: it came from a backup.
      try await pass(account, replayFromStart: true)
    }
  }

  private func pass(_ account: VerifiedAccount, replayFromStart: Bool) async throws {
    var report = try await profile.synchronize(
      account: account, replayFromStart: replayFromStart, appPosition: try file.position()
    ) { batch in try file.apply(batch) }
    while let continuation = report.continuation {
      report = try await profile.synchronize(
        account: account, continuing: continuation, appPosition: try file.position()
      ) { batch in try file.apply(batch) }
    }
  }

  // MARK: Signing in and out

  /// How many changes wait for a decision before somebody signs in; 0: nothing to ask.
  func guestChangeCount() async throws -> Int {
    try await enqueueWhatIsLeft()
    return try await registry.unownedSummary()?.mutations ?? 0
  }

  /// Signs in; the signed-out notes become the account's, or are set aside.
  /// - Returns: bytes to keep for the next launch.
  func signIn(token: String, adopting: Bool) async throws -> Data {
    try await enqueueWhatIsLeft()
    let account = try await registry.verify(token: token)
    try file.setAdopting(adopting ? account.bytes : nil)
    if !adopting { try await registry.setAsideUnowned(decidedBy: account) }
    try await finishAdoptions(by: account)
    profile = try await registry.profile(for: account)
    file = try NotesFile(in: folder, area: profile.id, owner: account.bytes)
    session.signIn(account, token: token)
    self.account = account
    try await enqueueWhatIsLeft()
    return account.bytes
  }

  /// Carries out what the person decided for this account, now or before a crash.
  func finishAdoptions(by account: VerifiedAccount) async throws {
    for area in try NotesFile.areas(in: folder) {
      let guest = try NotesFile(in: folder, area: area, owner: nil)
      guard try guest.adopting() == account.bytes else { continue }
      let adopted = try await registry.adopt(area, by: account)
      if adopted.id == area {
        try guest.setOwner(account.bytes)
      } else {
        try NotesFile(in: folder, area: adopted.id, owner: account.bytes).takeOver(guest)
      }
    }
  }

  /// Signs out. Everything stays, with what waits; it opens at the next sign-in.
  func signOut() async throws {
    session.signOut()
    account = nil
    profile = try await registry.unownedProfile()
    file = try NotesFile(in: folder, area: profile.id, owner: nil)
  }
}

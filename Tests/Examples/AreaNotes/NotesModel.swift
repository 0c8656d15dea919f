import Foundation
import Holdfast

/// One note, as it is stored and sent.
struct Note: Codable {
  var title: String
  var isDone = false
}

/// What a person decided about the notes that were written before signing in.
enum GuestNotes: String {
  case adopt
  case setAside = "set-aside"
  case keep
}

/// An app's model: it keeps its notes in the area, so that a pass needs no closure.
///
/// It lives on the main actor like any view model; nothing of Holdfast has to be sent anywhere.
@MainActor
final class NotesModel {
  private let session = AppSession()
  private let registry: ProfileRegistry
  private(set) var profile: Profile

  /// The account of the open profile; nil while nobody is signed in.
  private var account: VerifiedAccount?

  /// Opens the notes of whoever was signed in when the app ended, or the signed-out ones.
  /// - Parameter saved: the bytes that ``signIn(token:guestNotes:)`` returned, and a token.
  init(folder: URL, hub: URL, saved: (account: Data, token: String)? = nil) async throws {
    registry = try ProfileRegistry(directory: folder, session: session, hub: hub)
    session.restore(account: saved?.account, token: saved?.token)
    profile = try await registry.currentProfile()
    account = try profile.owner
  }

  // MARK: Notes

  /// Every note, in the order of their IDs.
  func notes() throws -> [(record: Record, note: Note)] {
    try profile.records(prefix: "note/").map { ($0, try $0.decode(Note.self)) }
  }

  /// Adds a note. It is on disk when this returns.
  func add(_ id: String, _ title: String) async throws {
    try await profile.enqueue(
      .put("note/\(id)", encoding: Note(title: title), base: .mustNotExist), account: account)
  }

  /// Changes a note, based on the version that the person saw.
  func update(_ record: Record, _ note: Note) async throws {
    try await profile.enqueue(
      .put(record.id, encoding: note, base: record.base), account: account)
  }

  /// Deletes a note, based on the version that the person saw.
  func delete(_ record: Record) async throws {
    try await profile.enqueue(.delete(record.id, base: record.base), account: account)
  }

  // MARK: Signing in and out

  /// How many notes wait for a decision before somebody signs in; 0: nothing to ask.
  func guestNoteCount() async throws -> Int {
    try await registry.unownedSummary()?.records ?? 0
  }

  /// Signs in.
  /// - Returns: bytes to keep for the next launch.
  func signIn(token: String, guestNotes: GuestNotes) async throws -> Data {
    let account = try await registry.verify(token: token)
    switch guestNotes {
    case .adopt:
      let guest = try await registry.unownedProfile()
      profile = try await guest.bindAccount(account, adoptingUnownedData: true)
    case .setAside:
      try await registry.setAsideUnowned(decidedBy: account)
      profile = try await registry.profile(for: account)
    case .keep:
      try await registry.keepUnowned(decidedBy: account)
      profile = try await registry.profile(for: account)
    }
    session.signIn(account, token: token)
    self.account = account
    return account.bytes
  }

  /// What has not reached the hub, to show before ``signOut()``.
  func pending() throws -> PendingSummary { try profile.pendingSummary() }

  /// Signs out. The notes stay, with everything that waits; they open at the next sign-in.
  func signOut() async throws {
    session.signOut()
    account = nil
    profile = try await registry.unownedProfile()
  }

  // MARK: Synchronizing

  /// Sends what waits and brings what is new; conflicts are kept for ``conflicts()``.
  func synchronize() async throws {
    guard let account else { return }
    try await profile.synchronize(account: account)
  }

  /// The changes that the hub refused, for the person to decide.
  func conflicts() throws -> [OutboxEntry] { try profile.parked() }

  /// Carries a decision out; the next pass sends it.
  func resolve(_ entry: OutboxEntry, _ resolution: Resolution) async throws {
    guard let account else { return }
    try await profile.resolve(
      entry.mutation, seen: entry.parked?.current?.version, account: account, resolution)
  }
}

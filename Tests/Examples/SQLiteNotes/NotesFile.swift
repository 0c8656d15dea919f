import Foundation
import Holdfast

/// A change that is saved with its row and may not have reached the outbox yet.
struct WaitingChange {
  /// The mutation's UUID, the same at every attempt.
  let id: UUID
  let note: String
  /// The text at that moment; nil: the note was deleted.
  let text: String?
  /// The hub's version that the person saw; nil: the hub had none.
  let version: UInt64?

  /// What is enqueued: the same UUID and content each time.
  var mutation: Mutation {
    let base = version.map { Mutation.Base.version($0) } ?? .mustNotExist
    guard let text else { return .delete(RecordID(note), base: base, mutation: id) }
    return .put(RecordID(note), Data(text.utf8), base: base, mutation: id)
  }
}

/// The app's own document: notes of one area in an SQLite file named after it.
final class NotesFile {
  /// The area whose notes these are.
  let area: AreaID
  let url: URL
  private let sqlite: SQLiteFile

  private static let schema = [
    // owner: bytes of the account, NULL while signed out. adopting: bytes of the account that the
    // person gave these notes to. position: of the last batch that was applied here.
    """
    CREATE TABLE IF NOT EXISTS document (
      id INTEGER PRIMARY KEY CHECK (id = 1), owner BLOB, adopting BLOB, position BLOB)
    """,
    "CREATE TABLE IF NOT EXISTS note (id TEXT PRIMARY KEY, text TEXT NOT NULL, version INTEGER)",
    """
    CREATE TABLE IF NOT EXISTS waiting (
      place INTEGER PRIMARY KEY, mutation BLOB NOT NULL UNIQUE, note TEXT NOT NULL, text TEXT,
      version INTEGER)
    """,
  ]

  /// Opens an area's file, or makes it.
  /// - Parameter owner: who owns a file that is made now; one that exists keeps its own.
  init(in folder: URL, area: AreaID, owner: Data?) throws {
    self.area = area
    url = folder.appending(path: "notes-\(area).sqlite")
    sqlite = try SQLiteFile(url)
    try sqlite.transaction {
      for statement in Self.schema { try sqlite.run(statement) }
      try sqlite.run(
        "INSERT OR IGNORE INTO document (id, owner) VALUES (1, ?)",
        [owner.map { .blob($0) } ?? .null])
    }
  }

  /// The areas whose files are in a folder.
  static func areas(in folder: URL) throws -> [AreaID] {
    try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted().compactMap { name in
      guard name.hasPrefix("notes-"), name.hasSuffix(".sqlite") else { return nil }
      return AreaID(String(name.dropFirst(6).dropLast(7)))
    }
  }

  func transaction<R>(_ body: () throws -> R) throws -> R { try sqlite.transaction(body) }

  // MARK: Notes

  func notes() throws -> [(id: String, text: String, version: UInt64?)] {
    try sqlite.run("SELECT id, text, version FROM note ORDER BY id").compactMap { row in
      guard let id = row[0].text, let text = row[1].text else { return nil }
      return (id, text, row[2].integer.map { UInt64($0) })
    }
  }

  /// Saves a change of the person: the row, and the UUID under which it will be sent.
  func write(_ note: String, _ text: String?) throws {
    try transaction {
      let row = try sqlite.run("SELECT version FROM note WHERE id = ?", [.text(note)]).first
      let version = row?[0] ?? .null
      if let text {
        try sqlite.run(
          """
          INSERT INTO note (id, text) VALUES (?, ?)
          ON CONFLICT (id) DO UPDATE SET text = excluded.text
          """, [.text(note), .text(text)])
      } else {
        try sqlite.run("DELETE FROM note WHERE id = ?", [.text(note)])
      }
      try sqlite.run(
        "INSERT INTO waiting (mutation, note, text, version) VALUES (?, ?, ?, ?)",
        [.uuid(UUID()), .text(note), text.map { .text($0) } ?? .null, version])
    }
  }

  /// The changes that may not have reached the outbox yet, in order.
  func waiting() throws -> [WaitingChange] {
    try sqlite.run("SELECT mutation, note, text, version FROM waiting ORDER BY place")
      .compactMap { row in
        guard let id = row[0].uuid, let note = row[1].text else { return nil }
        return WaitingChange(
          id: id, note: note, text: row[2].text, version: row[3].integer.map { UInt64($0) })
      }
  }

  func isWaiting(_ note: RecordID) throws -> Bool {
    try !sqlite.run("SELECT 1 FROM waiting WHERE note = ? LIMIT 1", [.text(note.text)]).isEmpty
  }

  /// Strikes changes off that are in the outbox.
  func strikeOff(_ changes: [WaitingChange]) throws {
    try transaction {
      for change in changes {
        try sqlite.run("DELETE FROM waiting WHERE mutation = ?", [.uuid(change.id)])
      }
    }
  }

  /// Saves a batch and its position in one transaction.
  func apply(_ batch: borrowing ChangeBatch) throws {
    let changes = try batch.changes(localOwner: try owner()).copies()
    try transaction {
      for change in changes {
        // An edit that waits is not overwritten, in the outbox or still on its way there.
        if try batch.isPending(change.record) || isWaiting(change.record) { continue }
        try take(change)
      }
      try setPosition(batch.position)
    }
  }

  /// Takes a change of the hub over, within the caller's transaction.
  private func take(_ change: Change) throws {
    guard let payload = change.payload else {
      try sqlite.run("DELETE FROM note WHERE id = ?", [.text(change.record.text)])
      return
    }
    try sqlite.run(
      "INSERT OR REPLACE INTO note (id, text, version) VALUES (?, ?, ?)",
      [
        .text(change.record.text), .text(String(decoding: payload, as: UTF8.self)),
        .integer(Int64(change.version)),
      ])
  }

  // MARK: The document

  /// Bytes of the account whose notes these are; empty while signed out, which is nobody's.
  func owner() throws -> Data { try document("owner") ?? Data() }

  func adopting() throws -> Data? { try document("adopting") }

  func setAdopting(_ account: Data?) throws {
    try sqlite.run("UPDATE document SET adopting = ?", [account.map { .blob($0) } ?? .null])
  }

  /// The position of the last batch that was applied here; `.start` in a new file.
  func position() throws -> BatchPosition {
    try document("position").map { try JSONDecoder().decode(BatchPosition.self, from: $0) }
      ?? .start
  }

  func setPosition(_ position: BatchPosition) throws {
    try sqlite.run(
      "UPDATE document SET position = ?", [.blob(try JSONEncoder().encode(position))])
  }

  private func document(_ column: String) throws -> Data? {
    try sqlite.run("SELECT \(column) FROM document").first?[0].blob
  }

  /// Writes the owner of a file whose area was bound where it is.
  func setOwner(_ account: Data) throws {
    try sqlite.run(
      "UPDATE document SET owner = ?1, adopting = NULL WHERE owner IS NULL OR owner = ?1",
      [.blob(account)])
  }

  /// Moves the notes of a signed-out file here, in one transaction of both files. A note that is
  /// here already stays; what was adopted of it comes back as a conflict for the person.
  func takeOver(_ guest: NotesFile) throws {
    try sqlite.run("ATTACH ? AS guest", [.text(guest.url.path)])
    try transaction {
      try sqlite.run("INSERT OR IGNORE INTO note SELECT id, text, NULL FROM guest.note")
      try sqlite.run(
        """
        INSERT OR IGNORE INTO waiting (mutation, note, text)
        SELECT mutation, note, text FROM guest.waiting ORDER BY place
        """)
      for statement in [
        "DELETE FROM guest.note", "DELETE FROM guest.waiting",
        "UPDATE guest.document SET adopting = NULL",
      ] { try sqlite.run(statement) }
    }
    try sqlite.run("DETACH guest")
  }
}

extension SQLiteValue {
  fileprivate static func uuid(_ uuid: UUID) -> SQLiteValue {
    withUnsafeBytes(of: uuid.uuid) { .blob(Data($0)) }
  }

  fileprivate var uuid: UUID? {
    guard let bytes = blob, bytes.count == 16 else { return nil }
    return bytes.withUnsafeBytes { UUID(uuid: $0.loadUnaligned(as: uuid_t.self)) }
  }
}

// An app with its own SQLite file: a day of it, printed.
//
//   SQLiteNotes HUB TOKEN DIRECTORY [adopt | set-aside]
import Foundation
import Holdfast

let arguments = CommandLine.arguments
let answer = arguments.count > 4 ? arguments[4] : "adopt"
guard arguments.count > 3, let hub = URL(string: arguments[1]),
  ["adopt", "set-aside"].contains(answer)
else {
  print("usage: SQLiteNotes HUB TOKEN DIRECTORY [adopt | set-aside]")
  exit(64)
}
let token = arguments[2]
let folder = URL(filePath: arguments[3], directoryHint: .isDirectory)

@MainActor func show(_ app: SyncedNotes, _ situation: String) throws {
  let notes = try app.file.notes()
  print("\(situation): \(notes.count) notes, \(try app.profile.pendingSummary().count) waiting")
  for note in notes {
    print("  \(note.id): \(note.text) (\(note.version.map { "version \($0)" } ?? "not sent"))")
  }
}

let app = try await SyncedNotes(folder: folder, hub: hub)
try await app.write("note/bread", "Buy bread")
try await app.write("note/call", "Call Ada")
try show(app, "signed out")

print("the person is asked about \(try await app.guestChangeCount()) changes: \(answer)")
let saved = try await app.signIn(token: token, adopting: answer == "adopt")
try await app.synchronize()
try show(app, "signed in")

try await app.write("note/bread", "Buy bread and butter")
try await app.write("note/call", nil)
try show(app, "offline")
try await app.signOut()
try show(app, "signed out again")

let nextDay = try await SyncedNotes(folder: folder, hub: hub, saved: (saved, token))
try await nextDay.synchronize()
try show(nextDay, "next day, synchronized")

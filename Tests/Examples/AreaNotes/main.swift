// An app that keeps its notes in the area: a day of it, printed.
//
//   AreaNotes HUB TOKEN DIRECTORY [adopt | set-aside | keep]
import Foundation
import Holdfast

let arguments = CommandLine.arguments
guard arguments.count > 3, let hub = URL(string: arguments[1]),
  let answer = GuestNotes(rawValue: arguments.count > 4 ? arguments[4] : "adopt")
else {
  print("usage: AreaNotes HUB TOKEN DIRECTORY [adopt | set-aside | keep]")
  exit(64)
}
let token = arguments[2]
let folder = URL(filePath: arguments[3], directoryHint: .isDirectory)

@MainActor func show(_ model: NotesModel, _ situation: String) throws {
  let notes = try model.notes()
  print("\(situation): \(notes.count) notes, \(try model.pending().count) waiting")
  for (record, note) in notes {
    let version = record.version.map { "version \($0)" } ?? "not sent"
    print("  \(record.id.text): \(note.title)\(note.isDone ? ", done" : "") (\(version))")
  }
}

let model = try await NotesModel(folder: folder, hub: hub)
try await model.add("bread", "Buy bread")
try await model.add("call", "Call Ada")
try show(model, "signed out")

print("the person is asked about \(try await model.guestNoteCount()) notes: \(answer.rawValue)")
let saved = try await model.signIn(token: token, guestNotes: answer)
try await model.synchronize()
try show(model, "signed in")

if let first = try model.notes().first {
  var note = first.note
  note.isDone = true
  try await model.update(first.record, note)
}
try await model.signOut()
try show(model, "signed out again")

let nextDay = try await NotesModel(folder: folder, hub: hub, saved: (saved, token))
try show(nextDay, "next launch")
try await nextDay.synchronize()
try show(nextDay, "synchronized")

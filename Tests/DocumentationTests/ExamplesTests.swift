import Foundation
import Testing

@Suite("The example programs, each against a hub", .timeLimit(.minutes(5)))
struct ExamplesTests {
  @Test(
    "an app with its records in the area: what was adopted is sent, an edit survives signing out")
  func areaNotesAdopt() async throws {
    try await withHub { hub in
      let token = try hub.token(for: "alice")
      let run = try await Example.run("AreaNotes", hub, token, hub.folder("device"), "adopt")
      #expect(run.status == 0, "\(run.errors)")
      #expect(
        run.output == """
          signed out: 2 notes, 2 waiting
            note/bread: Buy bread (not sent)
            note/call: Call Ada (not sent)
          the person is asked about 2 notes: adopt
          signed in: 2 notes, 0 waiting
            note/bread: Buy bread (version 1)
            note/call: Call Ada (version 2)
          signed out again: 0 notes, 0 waiting
          next launch: 2 notes, 1 waiting
            note/bread: Buy bread, done (version 1)
            note/call: Call Ada (version 2)
          synchronized: 2 notes, 0 waiting
            note/bread: Buy bread, done (version 3)
            note/call: Call Ada (version 2)

          """)
    }
  }

  @Test(
    "an app with its records in the area: what was declined is sent to nobody",
    arguments: [("set-aside", 0), ("keep", 2)])
  func areaNotesDecline(answer: String, notesOfTheNextGuest: Int) async throws {
    try await withHub { hub in
      let token = try hub.token(for: "alice")
      let run = try await Example.run("AreaNotes", hub, token, hub.folder("device"), answer)
      #expect(run.status == 0, "\(run.errors)")
      let lines = run.output.split(separator: "\n")
      #expect(lines.contains("signed in: 0 notes, 0 waiting"))
      #expect(
        lines.contains(
          "signed out again: \(notesOfTheNextGuest) notes, \(notesOfTheNextGuest) waiting"))
      #expect(lines.last == "synchronized: 0 notes, 0 waiting")
    }
  }

  @Test("an app with a file of its own: edits made offline survive signing out and go up")
  func sqliteNotesAdopt() async throws {
    try await withHub { hub in
      let token = try hub.token(for: "alice")
      let run = try await Example.run("SQLiteNotes", hub, token, hub.folder("device"), "adopt")
      #expect(run.status == 0, "\(run.errors)")
      #expect(
        run.output == """
          signed out: 2 notes, 2 waiting
            note/bread: Buy bread (not sent)
            note/call: Call Ada (not sent)
          the person is asked about 2 changes: adopt
          signed in: 2 notes, 0 waiting
            note/bread: Buy bread (version 1)
            note/call: Call Ada (version 2)
          offline: 1 notes, 2 waiting
            note/bread: Buy bread and butter (version 1)
          signed out again: 0 notes, 0 waiting
          next day, synchronized: 1 notes, 0 waiting
            note/bread: Buy bread and butter (version 3)

          """)
    }
  }

  @Test("an app with a file of its own: what was declined stays out of the account's file")
  func sqliteNotesDecline() async throws {
    try await withHub { hub in
      let token = try hub.token(for: "alice")
      let run = try await Example.run("SQLiteNotes", hub, token, hub.folder("device"), "set-aside")
      #expect(run.status == 0, "\(run.errors)")
      let lines = run.output.split(separator: "\n")
      #expect(lines.contains("signed in: 0 notes, 0 waiting"))
      #expect(lines.last == "  note/bread: Buy bread and butter (version 1)")
    }
  }

  @Test("a script: adds and lists offline, and another device has what it sent")
  func script() async throws {
    try await withHub { hub in
      let token = try hub.token(for: "alice")
      let (first, second) = (hub.folder("first"), hub.folder("second"))
      func note(_ folder: URL, _ words: String...) async throws -> String {
        let run =
          words.count > 1
          ? try await Example.run("note", hub, token, folder, words[0], words[1])
          : try await Example.run("note", hub, token, folder, words[0])
        #expect(run.status == 0, "\(run.errors)")
        return run.output
      }
      #expect(try await note(first, "list").isEmpty)
      #expect(try await note(first, "add", "Buy bread") == "1 waiting\n")
      #expect(try await note(first, "list") == "+ Buy bread\n")
      #expect(try await note(first, "sync") == "1 sent, 1 here\n")
      #expect(try await note(first, "list") == "  Buy bread\n")
      #expect(try await note(second, "sync") == "0 sent, 1 here\n")
      #expect(try await note(second, "list") == "  Buy bread\n")
    }
  }

  @Test("a script: without a hub it says so in one sentence, and what was added stays")
  func scriptOffline() async throws {
    try await withHub { hub in
      let (token, device) = (try hub.token(for: "alice"), hub.folder("device"))
      let add = try await Example.run("note", hub, token, device, "add", "Buy bread")
      #expect(add.status == 0, "\(add.errors)")
      let sync = try await Example.run("note", hub.unreachable, token, device, "sync")
      #expect(sync.status == 1)
      #expect(sync.errors.hasPrefix("note: no answer came from the hub"))
      #expect(sync.errors.split(separator: "\n").count == 1)
      #expect(!sync.errors.contains(token))
      let list = try await Example.run("note", hub.unreachable, token, device, "list")
      #expect(list.output == "+ Buy bread\n")
    }
  }
}

import Foundation
import ProfileStore
import Testing

@Suite("profilectl, given what is no store")
struct NoStoreTests {
  /// Runs each command at a place and expects the same refusal of all, and nothing changed.
  private func expectRefusal(
    at place: URL, in root: TemporaryDirectory, exitCode: Int32, _ sentence: String
  ) async throws {
    let before = try FileTree(root.url)
    for words in [["list"], ["list", "--json"], ["show", "0123"], ["outbox", "0123"]] {
      let run = await ToolRun.inProcess(place, words)
      #expect(run.exitCode == exitCode)
      #expect(run.output == "")
      #expect(run.errors == "profilectl: \(sentence)\n")
    }
    #expect(try FileTree(root.url) == before)
  }

  @Test("says that nothing is there, and makes nothing")
  func missing() async throws {
    let root = try TemporaryDirectory()
    let place = root.url.appending(path: "none")
    try await expectRefusal(
      at: place, in: root, exitCode: 66, "there is no store at '\(place.path)'")
  }

  @Test("says that it is a file, and leaves it as it is")
  func file() async throws {
    let root = try TemporaryDirectory()
    let place = root.url.appending(path: "file")
    try Data("content".utf8).write(to: place)
    try await expectRefusal(
      at: place, in: root, exitCode: 66,
      "'\(place.path)' is a file: give the store's directory")
  }

  @Test("says that an empty directory is no store, and makes nothing in it")
  func empty() async throws {
    let root = try TemporaryDirectory()
    try await expectRefusal(
      at: root.url, in: root, exitCode: 66,
      "'\(root.url.path)' is no store: it has neither a registry nor a profile")
  }

  @Test("says that a directory of other files is no store")
  func otherFiles() async throws {
    let root = try TemporaryDirectory()
    for name in ["areas", "areas/0a", "registry"] {
      try FileManager.default.createDirectory(
        at: root.url.appending(path: name), withIntermediateDirectories: false)
    }
    try Data("not an environment".utf8).write(to: root.url.appending(path: "areas/0a/readme"))
    try await expectRefusal(
      at: root.url, in: root, exitCode: 66,
      "'\(root.url.path)' is no store: it has neither a registry nor a profile")
  }

  @Test("refuses a store of a newer format, and leaves it as it is")
  func newer() async throws {
    let store = try TestStore()
    _ = try await store.profile(of: try TestStore.account("alice@example.org"))
    let copy = try store.copied()
    try copy.put([0, 0, 0, 9], for: "format", in: "registry")
    try await expectRefusal(
      at: copy.directory, in: copy.root, exitCode: 65,
      "the store has format 9, this version reads up to 4: update the program")
    // The app refuses it, too, and before it makes anything in it.
    let before = try FileTree(copy.directory)
    #expect {
      try ProfileRegistry(directory: copy.directory, session: AppSession())
    } throws: { ($0 as? StoreError)?.code == .newerFormat }
    #expect(
      try FileTree(copy.directory).items["registry/data.mdb"] == before.items["registry/data.mdb"])
  }

  @Test("understands its command line, or says what it did not understand")
  func usage() async throws {
    let store = try TestStore()
    let copy = try store.copied()
    for (words, sentence) in [
      (["show"], "missing argument '<profile>'"),
      (
        ["show", "123"],
        "'123' is no value for '<profile>': expected 4 to 32 hexadecimal digits, as 'list' shows "
          + "them"
      ),
      (
        ["outbox", "12345-"],
        "'12345-' is no value for '<profile>': expected 4 to 32 hexadecimal digits, as 'list' "
          + "shows them"
      ),
      (
        ["outbox", "1234", "--limit", "0"],
        "'0' is no value for '--limit <count>': expected a whole number from 1 to 1000000000"
      ),
    ] {
      let run = await copy.run(words)
      #expect(run.exitCode == 64)
      #expect(
        run.errors
          == "profilectl: \(sentence)\nSee 'profilectl \(words[0]) --help'.\n")
    }
  }

  @Test("says that files of another user may not be read")
  func permission() async throws {
    await #expect(processExitsWith: .success) {
      let copy = try TestStore().copied()
      try FileManager.default.setAttributes(
        [.posixPermissions: geteuid() == 0 ? 0o700 : 0], ofItemAtPath: copy.directory.path)
      // Nothing is forbidden to root.
      let user = geteuid()
      if user == 0 { try #require(seteuid(65_534) == 0) }
      let run = await copy.run(["list"])
      if user == 0 {
        try #require(seteuid(0) == 0)
      } else {
        try FileManager.default.setAttributes(
          [.posixPermissions: 0o700], ofItemAtPath: copy.directory.path)
      }
      #expect(run.exitCode == 77)
      #expect(run.output == "")
      #expect(
        run.errors == """
          profilectl: the store may not be opened: stat: permission denied, in \
          \(copy.directory.path)/registry/data.mdb [13]; use the account of the app, which may \
          read the store and write each 'lock.mdb', or look at a copy of your own

          """)
    }
  }
}

import DocumentationSupport
import Foundation
import Testing

@Suite("The README")
struct ReadmeTests {
  private static func program() throws -> Block {
    try #require(try Repository.text("README.md").fencedBlocks.first { $0.language == "swift" })
  }

  /// The block that shows what the program prints.
  static func output() throws -> Block {
    let blocks = try Repository.text("README.md").fencedBlocks
    let index = try #require(blocks.firstIndex { $0.language == "swift" })
    return try #require(index + 1 < blocks.count ? blocks[index + 1] : nil)
  }

  @Test("shows a whole program, byte for byte the one that is built")
  func program() throws {
    let source = try Repository.text("Tests/Examples/Readme/main.swift")
    #expect(try Self.program().content == source)
  }

  @Test("has a program of at most 25 lines, which stands with its output before line 40")
  func length() throws {
    #expect(try Self.program().lines.count <= 25)
    #expect(try Self.output().lastLine < 40)
  }

  @Test("has at most 150 lines")
  func whole() throws {
    let lines = try Repository.text("README.md").split(
      separator: "\n", omittingEmptySubsequences: false)
    #expect(lines.count - 1 <= 150)
  }

  @Test("names only files and directories that exist")
  func paths() throws {
    let named = try Repository.text("README.md").captures(
      /`((?:Sources|Tests|Tools|Config)[A-Za-z0-9\/.+_-]*)/)
    #expect(named.count > 5, "were they found?")
    for path in named {
      let exists = FileManager.default.fileExists(
        atPath: Repository.root.appending(path: path).path)
      #expect(exists, "README.md names \(path), which does not exist")
    }
  }

  @Test("prints what it says, against a hub", .timeLimit(.minutes(5)))
  func run() async throws {
    try await withHub { hub in
      let token = try hub.token(for: "alice")
      let run = try await Example.run("Readme", hub, token, hub.folder("readme"))
      #expect(run.status == 0, "\(run.errors)")
      #expect(run.output == (try Self.output().content))
    }
  }
}

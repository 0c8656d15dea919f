import DocumentationSupport
import Foundation
import LMDB
import Testing

@Suite("The first program")
struct FirstProgramTests {
  @Test("is shown whole on the landing page, with what it prints", .timeLimit(.minutes(1)))
  func firstProgram() async throws {
    let blocks = try Repository.text("Sources/LMDB/LMDB.docc/LMDB.md").fencedBlocks
    try #require(blocks.count >= 2)
    let source = try Repository.text("Tests/Examples/FirstLMDB/Notes.swift")
    #expect(blocks[0].content == source)
    #expect(blocks[0].lines.count <= 25)

    let directory = try TemporaryDirectory()
    let said = try await Tool.succeed(
      Tool.products.appending(path: "FirstLMDB").path, [directory.file("store")])
    #expect(said == blocks[1].content)
  }

  @Test("is shorter still in the README")
  func readme() async throws {
    let directory = try TemporaryDirectory()
    let path = directory.file("store")

    let environment = try Environment.open(at: path)
    let notes = try environment.table("notes", key: UInt64Codec.self, value: TextCodec.self)
    try await environment.write { try $0.put("Buy bread", for: 1, in: notes) }
    let note = try environment.read { try $0.value(of: 1, in: notes) }

    #expect(note == "Buy bread")
    let source = try Repository.text("Tests/LMDBDocumentationTests/FirstProgramTests.swift")
    let blocks = try Repository.text("README.md").fencedBlocks.filter { $0.language == "swift" }
    #expect(blocks.contains { source.contains(movedRight: $0.lines) })
  }
}

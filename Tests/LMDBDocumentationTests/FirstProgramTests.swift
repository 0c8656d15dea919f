import DocumentationSupport
import Foundation
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
    let run = try await Tool.run(
      Tool.products.appending(path: "FirstLMDB").path, directory.file("store"))
    #expect(run.status == 0)
    #expect(run.said == blocks[1].content)
  }
}

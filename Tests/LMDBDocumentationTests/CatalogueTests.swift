import DocumentationSupport
import Foundation
import Testing

@Suite("The documentation of LMDB", .timeLimit(.minutes(5)))
struct CatalogueTests {
  static let catalogue = "Sources/LMDB/LMDB.docc"

  @Test("shows no Swift that the tests beside it do not run")
  func examples() throws {
    let sources = try ["Tests/LMDBDocumentationTests", "Tests/Examples/FirstLMDB"].flatMap {
      try Repository.files(under: $0, ending: ".swift").map(Repository.text)
    }
    var count = 0
    for page in try Repository.pages(of: Self.catalogue) {
      for block in page.text.fencedBlocks where block.language == "swift" {
        count += 1
        let isRun = sources.contains { $0.contains(movedRight: block.lines) }
        #expect(isRun, "\(page.name).md shows this, and no test does:\n\(block.content)")
      }
    }
    #expect(count > 15, "the pages have \(count) Swift blocks; were they found?")
  }

  @Test("explains every public declaration, and lists each on a page")
  func declarations() async throws {
    let directory = try TemporaryDirectory()
    let declarations = try await SymbolGraph.extract(
      "LMDB", into: URL(filePath: directory.file("graphs"))
    ).own(of: "LMDB")
    #expect(declarations.count > 200, "were they found?")
    let listed = Set(
      try Repository.pages(of: Self.catalogue).flatMap { page in
        // A type's own page names its members alone.
        let type = page.text.captures(/^# ``LMDB\/([A-Za-z]+)``/).first.map { $0 + "/" } ?? ""
        // A link to one of several declarations with the same name ends with a hash or its types.
        return page.text.captures(/\n- ``([^`]+?)(?:-(?:[0-9a-z]{4,6}|\([^`]*\)))?``/).map {
          type + $0
        }
      })
    for declaration in declarations {
      let comment = declaration.comment ?? ""
      #expect(!comment.isEmpty, "\(declaration.path) has no comment")
      if declaration.isThrowing {
        let saysWhat = comment.contains("- Throws:") || comment.hasPrefix("The same")
        #expect(saysWhat, "\(declaration.path) does not say what it throws")
      }
      // Members stand on their type's own page, except of the types that have too many of them.
      let type = declaration.pathComponents[0]
      let isLong = ["Environment", "Transaction", "WriteTransaction", "EnvironmentPool"]
        .contains(type)
      guard declaration.pathComponents.count == 1 || isLong else { continue }
      guard declaration.pathComponents.count <= 2 else { continue }
      #expect(listed.contains(declaration.path), "no page lists \(declaration.path)")
    }
  }

  @Test("has no link into nothing and nothing else that its compiler warns of")
  func compiles() async throws {
    try await DocumentationCompiler.compile("LMDB")
  }

  @Test("says of every error code its cause and remedy, and of no other")
  func errors() throws {
    let codes = try Repository.text("Sources/LMDB/LMDBError.swift").captures(
      /public static let ([A-Za-z]+) = Code\(/)
    #expect(codes.count > 20, "were they found?")
    let rows = try Repository.text("\(Self.catalogue)/ErrorCodes.md").captures(
      /\n\| ``LMDBError\/Code\/([A-Za-z]+)`` \| [^|]{10,} \| [^|]{5,} \|/)
    #expect(rows.sorted() == codes.sorted())
  }

  @Test("says of every rule who keeps it")
  func rules() throws {
    let page = try Repository.text("\(Self.catalogue)/RulesAndWhereTheyAreKept.md")
    let rows = page.captures(/\n\| ([^\n]+) \|/).filter { !$0.hasPrefix("---") }
    #expect(rows.count > 30, "were they found?")
    let keepers = ["compiler", "trap", "error", "inside", "kept by", "you"]
    for row in rows {
      let cells = row.components(separatedBy: " | ")
      #expect(cells.count == 3, "\(row)")
      #expect(keepers.contains { cells[1].contains($0) }, "\(row)")
    }
  }
}

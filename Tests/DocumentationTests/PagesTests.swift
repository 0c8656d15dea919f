import DocumentationSupport
import Foundation
import Snippets
import Testing

@Suite("The pages of the documentation")
struct PagesTests {
  static let catalogue = "Sources/Holdfast/Holdfast.docc"

  @Test("show no Swift that is not compiled with the examples")
  func snippets() throws {
    let sources = try Repository.files(under: "Tests/Examples", ending: ".swift").map {
      try Repository.text($0)
    }
    var count = 0
    for page in try Repository.pages(of: Self.catalogue) {
      for block in page.text.fencedBlocks where block.language == "swift" {
        count += 1
        let isCompiled = sources.contains { $0.contains(movedRight: block.lines) }
        #expect(isCompiled, "in \(page.name).md, not in Tests/Examples:\n\(block.content)")
      }
    }
    #expect(count > 20, "the pages have \(count) Swift blocks; were they found?")
  }

  @Test("compile without a warning", .timeLimit(.minutes(5)))
  func compile() async throws {
    try await DocumentationCompiler.compile("Holdfast")
  }

  @Test("link only to pages that exist, and the landing page lists each of them")
  func links() throws {
    let pages = try Repository.pages(of: Self.catalogue)
    let names = Set(pages.map(\.name))
    for page in pages {
      for link in page.text.captures(/<doc:([A-Za-z]+)>/) {
        #expect(names.contains(link), "\(page.name).md links to \(link), which does not exist")
      }
    }
    let landing = try #require(pages.first { $0.name == "Holdfast" })
    let listed = landing.text.captures(/- <doc:([A-Za-z]+)>/)
    #expect(Set(listed) == names.subtracting(["Holdfast"]))
  }

  @Test(
    "say of every error code what to do, and of no other",
    arguments: [
      ("StoreError", "Sources/ProfileStore/StoreError.swift"),
      ("SyncError", "Sources/ProfileSync/SyncError.swift"),
    ])
  func errors(type: String, source: String) throws {
    let codes = try Repository.text(source).captures(/public static let ([A-Za-z]+) = Code\(/)
    #expect(codes.count > 10, "\(source) has \(codes.count) codes; were they found?")
    let page = try Repository.text("\(Self.catalogue)/Errors.md")
    let section = try #require(
      page.components(separatedBy: "\n## ").first { $0.hasPrefix("\(type)\n") })
    let rows = section.captures(#/\n\| `([a-z][A-Za-z]*)` \| /#)
    #expect(Set(rows) == Set(codes), "Errors.md, section \(type)")
    #expect(rows.count == codes.count, "a code has two rows")
  }

  @Test("name a test for every fault that is survived, and each of them is there")
  func faults() throws {
    let page = try Repository.text("\(Self.catalogue)/DurabilityAndIsolation.md")
    let promised = try #require(page.components(separatedBy: "\n## What is not promised").first)
    let rows = promised.split(separator: "\n").filter {
      $0.hasPrefix("| ") && !$0.hasSuffix("| test |")
    }
    #expect(rows.count > 40, "the page has \(rows.count) rows; were they found?")
    let sources = try Repository.files(under: "Tests", ending: ".swift").map {
      try Repository.text($0)
    }
    for row in rows {
      let named = (row.split(separator: "|").last.map(String.init) ?? "")
        .captures(/`([A-Za-z]+\.[a-zA-Z]+)`/)
      #expect(!named.isEmpty, "no test stands in: \(row)")
      for name in named {
        let parts = name.split(separator: ".")
        let isThere = sources.contains { source in
          source.contains("struct \(parts[0]) {") && source.contains("func \(parts[1])(")
        }
        #expect(isThere, "DurabilityAndIsolation.md names \(name), which is not there")
      }
    }
  }

  @Test("each fault that a hub has on demand is asked for over HTTP by a test of passes")
  func faultsOnDemand() throws {
    let plan = try Repository.text("Sources/HubRules/Service/FaultPlan.swift")
    let names = Set(plan.captures(#/case \("([a-z-]+)", /#))
    #expect(names.count >= 16, "were they found?")
    let tests = try ["Tests/ProfileSyncTests", "Tests/CaseTests"].flatMap {
      try Repository.files(under: $0, ending: ".swift").map { try Repository.text($0) }
    }
    for name in names {
      let isAskedFor = tests.contains { $0.contains("\"\(name)\"") || $0.contains("\"\(name)=") }
      #expect(isAskedFor, "no test of passes asks a hub for \(name)")
    }
  }

  @Test("draw every table and every single value of an area, and of the registry")
  func diskFormat() throws {
    let page = try Repository.text("\(Self.catalogue)/HowItIsBuilt.md")
    let drawn = page.fencedBlocks.map(\.content).joined()
    let area = try Repository.text("Sources/ProfileStore/AreaTables.swift")
    let registry = try Repository.text("Sources/ProfileStore/RegistryIndex.swift")
    let tables = [area, registry].flatMap {
      $0.captures(/environment\.table\(\s*"([A-Za-z]+)"/) + $0.captures(/editsName = "([a-z]+)"/)
    }
    let singles = try Repository.text("Sources/ProfileStore/AreaKeys.swift")
    let keys = singles.captures(/\n  case ([a-z][A-Za-z]*)\n/)
    let values = registry.captures(/static let [a-z]+Key = "([a-z]+)"/)
    #expect(tables.count >= 14 && keys.count >= 15 && values.count >= 2, "were they found?")
    for name in tables + keys + values {
      let isDrawn = drawn.split(separator: "\n").contains { line in
        line.split(whereSeparator: { " ,".contains($0) }).contains { $0 == name }
      }
      #expect(isDrawn, "HowItIsBuilt.md does not draw \(name)")
    }
  }
}

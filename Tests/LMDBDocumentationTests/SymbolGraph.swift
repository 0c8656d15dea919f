import DocumentationSupport
import Foundation
import Testing

/// The public declarations of the built module, as the documentation compiler sees them.
struct SymbolGraph: Decodable {
  struct Symbol: Decodable {
    struct Kind: Decodable { let identifier: String }
    struct Comment: Decodable {}
    struct Location: Decodable { let uri: String }

    let kind: Kind
    let pathComponents: [String]
    let docComment: Comment?
    let location: Location?

    /// As a link names it: `Environment/read(_:)`.
    var path: String { pathComponents.joined(separator: "/") }
  }

  private let symbols: [Symbol]

  /// What is written in the module's own sources: no synthesized operator, nothing inherited.
  var own: [Symbol] { symbols.filter { $0.location?.uri.contains("/Sources/LMDB/") == true } }

  /// Extracts it into a directory.
  static func extract(into directory: String) async throws -> SymbolGraph {
    let target = try await Tool.run("swift", "-print-target-info")
    let triple = try #require(target.said.firstMatch(of: /"triple"\s*:\s*"([^"]+)"/)?.output.1)
    let run = try await Tool.run(
      "swift-symbolgraph-extract", "-module-name", "LMDB",
      "-I", Tool.products.appending(path: "Modules").path,
      "-Xcc", "-fmodule-map-file=\(Repository.root.path)/Sources/CLMDB/module.modulemap",
      "-target", String(triple), "-minimum-access-level", "public", "-skip-inherited-docs",
      "-skip-synthesized-members", "-emit-extension-block-symbols", "-output-dir", directory)
    try #require(run.status == 0, "\(run.said)")
    return try JSONDecoder().decode(
      SymbolGraph.self, from: Data(contentsOf: URL(filePath: directory + "/LMDB.symbols.json")))
  }
}

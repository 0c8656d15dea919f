package import Foundation

/// The public declarations of a built module, as the documentation compiler sees them.
package struct SymbolGraph: Decodable {
  package struct Symbol: Decodable {
    struct Comment: Decodable {
      struct Line: Decodable { let text: String }
      let lines: [Line]
    }
    struct Fragment: Decodable { let spelling: String }
    package struct Location: Decodable { let uri: String }

    package let pathComponents: [String]
    let docComment: Comment?
    let declarationFragments: [Fragment]
    let location: Location?

    /// What is written above it, if anything.
    package var comment: String? {
      docComment?.lines.map(\.text).joined(separator: "\n")
    }

    /// Whether it, or a closure that it takes, can throw.
    package var isThrowing: Bool {
      declarationFragments.map(\.spelling).joined().contains(/\)\s*(?:async )?throws/)
    }

    /// As a link names it: `Environment/read(_:)`.
    package var path: String { pathComponents.joined(separator: "/") }
  }

  private let symbols: [Symbol]

  /// What is written in the module's own sources: no synthesized operator, nothing inherited.
  package func own(of module: String) -> [Symbol] {
    symbols.filter { $0.location?.uri.contains("/Sources/\(module)/") == true }
  }

  /// Extracts it into a directory.
  package static func extract(_ module: String, into directory: URL) async throws -> SymbolGraph {
    let target = try await Tool.succeed("swift", ["-print-target-info"])
    let triple = target.firstMatch(of: /"triple"\s*:\s*"([^"]+)"/)?.output.1 ?? ""
    let maps = try Repository.files(under: "Sources", ending: "module.modulemap").flatMap {
      ["-Xcc", "-fmodule-map-file=\(Repository.root.appending(path: $0).path)"]
    }
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    try await Tool.succeed(
      "swift-symbolgraph-extract",
      [
        "-module-name", module, "-I", Tool.products.appending(path: "Modules").path,
        "-target", String(triple), "-minimum-access-level", "public", "-skip-inherited-docs",
        "-skip-synthesized-members", "-emit-extension-block-symbols", "-output-dir", directory.path,
      ] + maps)
    let file = directory.appending(path: "\(module).symbols.json")
    return try JSONDecoder().decode(SymbolGraph.self, from: Data(contentsOf: file))
  }
}

/// The documentation compiler.
package enum DocumentationCompiler {
  /// Compiles the catalogue of a built module with every warning an error.
  package static func compile(_ module: String) async throws {
    let directory = FileManager.default.temporaryDirectory.appending(path: "docc-\(UUID())")
    defer {
      do {
        try FileManager.default.removeItem(at: directory)
      } catch {
        print("could not remove \(directory.path): \(error)")
      }
    }
    let graphs = directory.appending(path: "graphs")
    _ = try await SymbolGraph.extract(module, into: graphs)
    try await Tool.succeed(
      "docc",
      [
        "convert", Repository.root.appending(path: "Sources/\(module)/\(module).docc").path,
        "--additional-symbol-graph-dir", graphs.path,
        "--output-dir", directory.appending(path: "archive").path,
        "--fallback-display-name", module, "--fallback-bundle-identifier", module,
        "--warnings-as-errors",
      ])
  }
}

import Foundation
import Testing

@Suite("The rules of the repository")
struct RepositoryRulesTests {
  static let findings: [(path: String, content: String, finding: String?)] = [
    ("Sources/LMDB/A.swift", "internal import CLMDB\nimport Foundation\n", nil),
    ("Sources/LMDB/A.swift", "import HubProtocol\n", "imports HubProtocol"),
    ("Sources/HubProtocol/A.swift", "import Foundation\n", nil),
    ("Sources/HubProtocol/A.swift", "import Synchronization\n", "imports Synchronization"),
    ("Sources/ProfileStore/A.swift", "public import LMDB\nimport HubProtocol\n", nil),
    ("Sources/ProfileStore/A.swift", "@_exported public import HubClient\n", "imports HubClient"),
    ("Sources/ProfileStore/A.swift", "  import struct ProfileSync.Pass\n", "imports ProfileSync"),
    ("Sources/ProfileStore/A.swift", "package import CLMDB\n", "imports CLMDB"),
    ("Sources/ProfileStore/A.swift", "// import HubServer\nlet s = \"import CURL\"\n", nil),
    ("Sources/HubClient/A.swift", "@preconcurrency import CCurl\n", nil),
    ("Sources/HubServer/A.swift", "import CMicroHTTPD\nimport CJOSE\n", nil),
    ("Tools/hubd/A.swift", "import CJOSE\n", "imports CJOSE"),
    ("Tools/benchmark/A.swift", "import CBench\nimport Measuring\n", nil),
    ("Tools/Measuring/A.swift", "import CBench\n", "imports CBench"),
    ("Sources/New/A.swift", "import Foundation\n", "Sources/New: no row in the arrow table"),
    ("Tests/AnyTests/A.swift", "@testable import LMDB\n", nil),
    ("Tests/AnyTests/A.swift", "import CCurl\n", "only the module HubClient may"),
    ("Sources/LMDB/A.swift", "// TO" + "DO: later\n", "A.swift:1:"),
    ("Tests/AnyTests/A.swift", "// FIX" + "ME\n", "A.swift:1:"),
    ("Sources/LMDB/A.swift", "// TO" + "DOS are lists\n", nil),
  ]

  @Test("find what breaks them and name it, and nothing else", arguments: findings)
  func finding(path: String, content: String, finding: String?) throws {
    let said = try tidy(path, Data(content.utf8))
    if let finding {
      #expect(said.text.contains(finding))
      #expect(said.text.split(separator: "\n").count == 1)
    } else {
      #expect(said.text == "")
    }
    #expect(said.exitCode == (finding == nil ? 0 : 1))
  }

  @Test("keep every file below 1 MiB")
  func size() throws {
    #expect(try tidy("Tests/data", Data(count: (1 << 20) - 1)).exitCode == 0)
    let said = try tidy("Tests/data", Data(count: 1 << 20))
    #expect(said.text.contains("Tests/data: 1 MiB or more"))
    #expect(said.exitCode == 1)
  }

  /// What the rules say to a tree of one file.
  private func tidy(_ path: String, _ content: Data) throws -> (exitCode: Int32, text: String) {
    let directory = FileManager.default.temporaryDirectory
      .appending(path: "tidy-\(UUID().uuidString)", directoryHint: .isDirectory)
    let file = directory.appending(path: path)
    try FileManager.default.createDirectory(
      at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
    defer { #expect(throws: Never.self) { try FileManager.default.removeItem(at: directory) } }
    try content.write(to: file)

    let script = URL(filePath: #filePath).deletingLastPathComponent()
      .appending(path: "../../Tools/Shared/tidy.sh").standardizedFileURL
    let process = Process()
    process.executableURL = URL(filePath: "/bin/bash")
    process.arguments = ["-uo", "pipefail", "-c", ". \"$0\" && tidy", script.path()]
    process.currentDirectoryURL = directory
    let output = Pipe()
    process.standardError = output
    try process.run()
    let said = try output.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    return (process.terminationStatus, String(decoding: said, as: UTF8.self))
  }
}

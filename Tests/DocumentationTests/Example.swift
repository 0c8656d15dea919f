import Foundation
import HubProtocol
import HubServer
import Testing

/// One run of an example program, in a process of its own.
struct Example {
  let status: Int32
  let output: String
  let errors: String

  /// Where the built programs lie: beside this test bundle.
  private static let products: URL = {
    #if os(macOS)
      for bundle in Bundle.allBundles where bundle.bundlePath.hasSuffix(".xctest") {
        return bundle.bundleURL.deletingLastPathComponent()
      }
    #endif
    return Bundle.main.bundleURL
  }()

  /// Runs a program with the hub's address, a token, a directory, and more words behind them.
  static func run(
    _ name: String, _ hub: RunningHub, _ token: String, _ folder: URL, _ words: String...
  ) async throws -> Example {
    let (output, errors) = (hub.folder("\(UUID()).out"), hub.folder("\(UUID()).err"))
    let process = Process()
    process.executableURL = products.appending(path: name)
    process.arguments = [hub.url.absoluteString, token, folder.path] + words
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = try newFile(output)
    process.standardError = try newFile(errors)
    let status = try await ended(process)
    return Example(
      status: status, output: try String(contentsOf: output, encoding: .utf8),
      errors: try String(contentsOf: errors, encoding: .utf8))
  }

  private static func newFile(_ url: URL) throws -> FileHandle {
    try Data().write(to: url)
    return try FileHandle(forWritingTo: url)
  }

  /// Runs it to its end without holding a thread: the hub needs them.
  private static func ended(_ process: Process) async throws -> Int32 {
    try await withCheckedThrowingContinuation { continuation in
      process.terminationHandler = { continuation.resume(returning: $0.terminationStatus) }
      do {
        try process.run()
      } catch {
        process.terminationHandler = nil
        continuation.resume(throwing: error)
      }
    }
  }
}

/// A hub in this process, and a directory for what a test makes.
struct RunningHub: Sendable {
  let server: HubServer
  let directory: URL
  /// Where the programs look for it.
  private(set) var url: URL

  init(_ server: HubServer, in directory: URL) {
    self.server = server
    self.directory = directory
    url = server.url
  }

  /// The same, for programs that cannot reach it.
  var unreachable: RunningHub {
    var copy = self
    // The discard port of TCP is reserved, and nothing listens there.
    if let nowhere = URL(string: "http://127.0.0.1:9") { copy.url = nowhere }
    return copy
  }

  func folder(_ name: String) -> URL { directory.appending(path: name) }
  func token(for account: String) throws -> String {
    try server.token(for: try AccountID(account))
  }
}

/// Runs a hub at a free port while `body` runs, and removes everything afterwards.
func withHub(
  isolation: isolated (any Actor)? = #isolation, _ body: (RunningHub) async throws -> Void
) async throws {
  let directory = FileManager.default.temporaryDirectory.appending(
    path: "documentation-\(UUID())", directoryHint: .isDirectory)
  try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
  var configuration = HubConfiguration(
    dataDirectory: directory.appending(path: "hub", directoryHint: .isDirectory),
    keys: [try SigningKey.generate(.hs256)])
  // Many hubs run at once: no need to reserve the address space of a large one for each.
  configuration.storeByteCountMax = 64 << 20
  let server = try await HubServer.start(configuration)
  do {
    try await body(RunningHub(server, in: directory))
  } catch {
    try await server.stop()
    try FileManager.default.removeItem(at: directory)
    throw error
  }
  try await server.stop()
  try FileManager.default.removeItem(at: directory)
}

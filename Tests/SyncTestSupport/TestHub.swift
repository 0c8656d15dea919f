package import Foundation
package import HubClient
package import HubProtocol
package import HubServer
package import ProfileStore
import Synchronization
import Testing

/// A key that all tests share: nothing depends on which it is.
package let testKey: SigningKey = {
  do { return try SigningKey.generate(.hs256) } catch {
    fatalError("no key for the tests: \(error)")
  }
}()

/// A real hub over real sockets, in this process, with faults on demand.
package final class TestHub: Sendable {
  private struct Running: Sendable {
    var configuration: HubConfiguration
    var server: HubServer
    var connection: HubConnection
  }

  private let directory: TemporaryDirectory
  private let running: Mutex<Running>
  private let watched = Mutex<[(area: Area, directory: TemporaryDirectory)]>([])

  private init(_ directory: TemporaryDirectory, _ configuration: HubConfiguration) async throws {
    self.directory = directory
    running = Mutex(try await Self.start(configuration))
  }

  private static func start(_ configuration: HubConfiguration) async throws -> Running {
    let server = try await HubServer.start(configuration)
    // Hundreds of tests at once on two cores, slowed down by a sanitizer, are no hub that is away.
    let connecting = HubConnection.Configuration(connectTimeout: .seconds(isSanitized ? 120 : 15))
    return Running(
      configuration: configuration, server: server,
      connection: try HubConnection(url: server.url, configuration: connecting))
  }

  /// Runs a hub for a test and stops it, whatever the test does; then looks whether the areas that
  /// were in use are sound.
  package static func run(
    _ limits: HubLimits = HubLimits(), isolation: isolated (any Actor)? = #isolation,
    _ body: (TestHub) async throws -> Void
  ) async throws {
    let directory = try TemporaryDirectory()
    var configuration = HubConfiguration(
      dataDirectory: directory.url.appending(path: "data", directoryHint: .isDirectory),
      keys: [testKey])
    configuration.limits = limits
    configuration.faultsEnabled = true
    configuration.captureDirectory = directory.url.appending(
      path: "captured", directoryHint: .isDirectory)
    let hub = try await TestHub(directory, configuration)
    do {
      try await body(hub)
    } catch {
      try await hub.stop()
      throw error
    }
    try await hub.stop()
    for (area, directory) in hub.watched.withLock({ $0 }) {
      try withExtendedLifetime(directory) { try requireSound(area) }
    }
  }

  private static func requireSound(_ area: Area) throws {
    do {
      #expect(try area.violations() == [])
    } catch let error as StoreError where error.code == .erased {
      // Nothing is left to look at.
    }
    #expect(area.passes.count == 0)
    #expect(!FileManager.default.fileExists(atPath: area.directory + "/scratch"))
  }

  /// The area is looked at when the test ends, and its directory stays until then.
  package func watch(_ area: Area, in directory: TemporaryDirectory) {
    watched.withLock { $0.append((area, directory)) }
  }

  package var server: HubServer { running.withLock(\.server) }
  package var connection: HubConnection { running.withLock(\.connection) }
  package var id: UUID { server.hubID }

  package func stop() async throws {
    connection.close()
    try await server.stop()
  }

  package func token(for account: String) throws -> String {
    try server.token(for: AccountID(account))
  }

  /// Everything that this account's requests carried, one file after the other.
  package func captured(of account: String) throws -> [String] {
    let own = try FileManager.default.contentsOfDirectory(
      at: captureDirectory, includingPropertiesForKeys: nil)
    for directory in own {
      let name = try Data(contentsOf: directory.appending(path: "account"))
      guard name == Data(account.utf8) else { continue }
      return try FileManager.default.contentsOfDirectory(atPath: directory.path).sorted()
        .filter { $0.hasSuffix(".request") }
        .map {
          String(
            decoding: try Data(contentsOf: directory.appending(path: $0)), as: UTF8.self)
        }
    }
    return []
  }

  private var captureDirectory: URL {
    directory.url.appending(path: "captured", directoryHint: .isDirectory)
  }

  // MARK: Restoring an old copy

  private var dataDirectory: URL { running.withLock(\.configuration.dataDirectory) }
  private var copy: URL { directory.url.appending(path: "copy", directoryHint: .isDirectory) }

  /// Puts a copy of the data aside, as an operator's backup.
  package func backUp() async throws {
    try await stop()
    try FileManager.default.copyItem(at: dataDirectory, to: copy)
    try await startAgain()
  }

  /// Puts the LMDB files of the backup back: what happened since is lost, and every account gets a
  /// new epoch.
  package func restore() async throws {
    try await stop()
    for file in try FileManager.default.subpathsOfDirectory(atPath: copy.path)
    where file.hasSuffix("data.mdb") {
      let place = dataDirectory.appending(path: file)
      try FileManager.default.removeItem(at: place)
      try FileManager.default.copyItem(at: copy.appending(path: file), to: place)
    }
    try await startAgain()
  }

  /// Starts it again with other limits.
  package func restart(_ limits: HubLimits) async throws {
    try await stop()
    try await startAgain { $0.limits = limits }
  }

  private func startAgain(_ change: (inout HubConfiguration) -> Void = { _ in }) async throws {
    var configuration = running.withLock(\.configuration)
    change(&configuration)
    let new = try await Self.start(configuration)
    running.withLock { $0 = new }
  }
}

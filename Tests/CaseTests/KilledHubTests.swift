import Foundation
import HubClient
import HubProtocol
import HubServer
import ProfileStore
import ProfileSync
import SyncTestSupport
import Synchronization
import Testing

/// The way to a hub that is another process each time it is started.
private final class MovingTransport: HubTransport {
  private struct State: Sendable {
    var connection: HubConnection?
    var onPush: (@Sendable () -> Void)?
  }

  private let state = Mutex(State())

  func connect(to url: URL, onPush: (@Sendable () -> Void)? = nil) throws {
    let connection = try HubConnection(url: url)
    state.withLock { $0 = State(connection: connection, onPush: onPush) }
  }

  func send(_ request: HubRequest) async throws(TransportError) -> HubResponse {
    let (connection, onPush) = state.withLock { ($0.connection, $0.onPush) }
    guard let connection else {
      throw TransportError(code: .unreachable, description: "not connected")
    }
    if request.call == .mutations { onPush?() }
    return try await connection.send(request)
  }
}

@Suite("E: a hub that is killed")
struct KilledHubTests {
  /// When the hub is killed, after a push was sent off: before, within and after its commit.
  private static let delays = [0, 1, 2, 4, 8, 16]

  @Test("E1: killed while it takes a push: every mutation is there, once, and in the same epoch")
  func killed() async throws {
    let directory = try TemporaryDirectory()
    let key = directory.url.appending(path: "key.jwk")
    try testKey.privateJWK().write(to: key)
    let arguments = [
      "serve", "--key", key.path, "--data", directory.url.appending(path: "data").path,
      "--port", "0",
    ]
    let transport = MovingTransport()
    let session = AppSession()
    session.signOut()
    let registry = try ProfileRegistry(
      directory: directory.url.appending(path: "store"), session: session)
    registry.connect(to: transport)
    let token = try freshToken(for: "alice")
    var profile: Profile?
    var account: VerifiedAccount?
    var epochs: Set<UUID> = []
    for (round, delay) in Self.delays.enumerated() {
      let hub = try ChildProgram("hubd", arguments)
      let url = try await Self.address(of: hub)
      try transport.connect(to: url)
      if profile == nil {
        account = try await registry.verify(token: token)
        session.signIn(try #require(account), token: token)
        profile = try await registry.profile(for: #require(account))
      }
      let (profile, account) = (try #require(profile), try #require(account))
      try await profile.synchronize(account: account)
      #expect(try profile.outbox().isEmpty)
      epochs.insert(try #require(try profile.cursor()?.epoch))
      try await profile.enqueue(
        (1...50).map { .put(RecordID("r\($0)"), Data("\(round)".utf8)) }, account: account)
      try transport.connect(to: url) {
        Task {
          try await Task.sleep(for: .milliseconds(delay))
          hub.kill()
        }
      }
      do { try await profile.synchronize(account: account) } catch let error as SyncError {
        #expect(error.retryClass == .later)
      }
      #expect(try await hub.end() == .signal(SIGKILL))
    }
    let (last, owner) = (try #require(profile), try #require(account))
    let hub = try ChildProgram("hubd", arguments)
    try transport.connect(to: try await Self.address(of: hub))
    try await last.synchronize(account: owner)
    let records = try last.records()
    #expect(records.count == 50)
    #expect(records.allSatisfy { $0.payload == Data("\(Self.delays.count - 1)".utf8) })
    // No mutation took a second sequence.
    #expect(try last.cursor()?.sequence == UInt64(50 * Self.delays.count))
    epochs.insert(try #require(try last.cursor()?.epoch))
    #expect(epochs.count == 1)
    hub.kill(SIGTERM)
    #expect(try await hub.end() == .exited(0))
  }

  private static func address(of hub: ChildProgram) async throws -> URL {
    let line = await hub.line() ?? ""
    let prefix = "listening on "
    try #require(line.hasPrefix(prefix), "\(line)")
    return try #require(URL(string: String(line.dropFirst(prefix.count))))
  }
}

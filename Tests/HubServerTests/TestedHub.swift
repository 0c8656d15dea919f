import Foundation
import HoldfastTesting
import HubProtocol
import HubRules
import HubServer
import ProfileSync
import Testing

/// The hub that a test talks to: the real one over its sockets, or the one in memory that apps test with.
struct TestedHub: Sendable {
  enum Kind: String, CaseIterable, Sendable {
    case server
    case memory

    /// Which one ``withHub(_:_:)`` runs.
    @TaskLocal static var current = server
  }

  private enum Hub {
    case server(HubServer)
    case memory(MemoryHub)
  }

  private let hub: Hub

  init(_ server: HubServer) { hub = .server(server) }

  /// One in memory with the limits and the time of a configuration.
  init(inMemory configuration: HubConfiguration, now: (@Sendable () -> Double)?) {
    var own = MemoryHub.Configuration()
    own.limits = configuration.limits
    own.isFaultHeaderKnown = configuration.faultsEnabled
    if let now { own.now = { Date(timeIntervalSince1970: now()) } }
    hub = .memory(MemoryHub(own))
  }

  /// The real one.
  /// - Precondition: it is.
  var server: HubServer {
    guard case .server(let server) = hub else {
      preconditionFailure("the test needs a hub with sockets")
    }
    return server
  }

  var hubID: UUID {
    switch hub {
    case .server(let server): server.hubID
    case .memory(let hub): hub.id
    }
  }

  var url: URL { server.url }

  /// How many wait.
  var waitingCount: Int {
    switch hub {
    case .server(let server): server.signals.count
    case .memory(let hub): hub.waitingCount
    }
  }

  /// Returns once so many clients wait, and only so many.
  func untilWaiting(_ count: Int) async throws {
    let clock = ContinuousClock()
    let limit = clock.now + .seconds(30)
    while waitingCount != count {
      try #require(clock.now < limit, "\(waitingCount) wait, not \(count)")
      try await clock.sleep(for: .milliseconds(2))
    }
  }

  func stop() async throws { if case .server(let server) = hub { try await server.stop() } }

  func token(for account: AccountID, lifetimeSeconds: Int64 = 3_600) throws -> String {
    switch hub {
    case .server(let server):
      try server.token(for: account, lifetimeSeconds: lifetimeSeconds)
    case .memory(let hub):
      hub.token(for: account.text, lifetime: .seconds(lifetimeSeconds))
    }
  }

  /// Sends bytes on a connection of their own and reads one answer.
  func exchange(_ bytes: Data, isHead: Bool = false) async throws -> RawAnswer {
    switch hub {
    case .server(let server):
      let port = server.url.port ?? 0
      return try await blocking {
        let connection = try RawConnection(port: port)
        connection.send(bytes)
        return try connection.receive(isHead: isHead)
      }
    case .memory(let hub):
      do {
        let answer = try await hub.send(Self.request(bytes))
        return RawAnswer(
          status: answer.status, headers: answer.headers, body: isHead ? Data() : answer.body)
      } catch  where (error as? TransportError)?.code == .connectionLost {
        throw RawHTTPError.ended(afterByteCount: 0)
      }
    }
  }

  /// A well-formed request as a transport has it.
  private static func request(_ bytes: Data) throws -> HubRequest {
    let end = try #require(bytes.firstRange(of: Data("\r\n\r\n".utf8)))
    let lines = String(decoding: bytes[..<end.lowerBound], as: UTF8.self).components(
      separatedBy: "\r\n")
    let line = lines[0].split(separator: " ").map(String.init)
    // What a client of HTTP adds, the one in memory adds as well.
    let headers = lines.dropFirst().compactMap { text -> HeaderField? in
      let parts = text.split(separator: ":", maxSplits: 1).map(String.init)
      guard parts.count == 2, !["Host", "Content-Length"].contains(parts[0]) else { return nil }
      return HeaderField(parts[0], parts[1].trimmingCharacters(in: .whitespaces))
    }
    let body = bytes[end.upperBound...]
    return HubRequest(
      method: line[0], target: line[1], headers: headers, body: body.isEmpty ? nil : Data(body))
  }

  // MARK: Administration

  func disable(_ account: AccountID) async throws {
    switch hub {
    case .server(let server): try await server.disable(account)
    case .memory(let hub): hub.setDisabled(true, account.text)
    }
  }

  func enable(_ account: AccountID) async throws {
    switch hub {
    case .server(let server): try await server.enable(account)
    case .memory(let hub): hub.setDisabled(false, account.text)
    }
  }

  func erase(_ account: AccountID) async throws {
    switch hub {
    case .server(let server): try await server.erase(account)
    case .memory(let hub): hub.erase(account.text)
    }
  }

  func recreate(_ account: AccountID) async throws {
    switch hub {
    case .server(let server): try await server.recreate(account)
    case .memory(let hub): hub.recreate(account.text)
    }
  }

  func beginEpoch(_ account: AccountID, forkedAt: UInt64? = nil) async throws {
    switch hub {
    case .server(let server): try await server.beginEpoch(account, forkedAt: forkedAt)
    case .memory(let hub): hub.beginEpoch(of: account.text, forkedAt: forkedAt)
    }
  }

  func purgeTombstones(of account: AccountID, below sequence: UInt64? = nil) async throws {
    switch hub {
    case .server(let server): try await server.purgeTombstones(of: account, below: sequence)
    case .memory(let hub): hub.purgeTombstones(of: account.text, below: sequence)
    }
  }

  func purgeResults(of account: AccountID, below sequence: UInt64? = nil) async throws {
    switch hub {
    case .server(let server): try await server.purgeResults(of: account, below: sequence)
    case .memory(let hub): hub.purgeResults(of: account.text, below: sequence)
    }
  }
}

/// Runs each test of a suite twice: with the real hub, and with the one in memory.
struct ForEachHub: SuiteTrait, TestTrait, TestScoping {
  var isRecursive: Bool { true }

  func provideScope(
    for test: Test, testCase: Test.Case?,
    performing function: @Sendable () async throws -> Void
  ) async throws {
    // Suites have their tests in them, which come here by themselves.
    guard testCase != nil else { return try await function() }
    for kind in TestedHub.Kind.allCases {
      try await TestedHub.Kind.$current.withValue(kind) { try await function() }
    }
  }
}

extension Trait where Self == ForEachHub {
  static var forEachHub: Self { ForEachHub() }
}

import Foundation
import HubProtocol
import HubRules
import HubServer
import Testing

/// A directory that is removed when the test lets go of it.
final class TemporaryDirectory: Sendable {
  let url: URL

  init() throws {
    url = FileManager.default.temporaryDirectory.appending(
      path: "hub-test-\(UUID().uuidString)", directoryHint: .isDirectory)
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
  }

  deinit {
    do { try FileManager.default.removeItem(at: url) } catch {
      Issue.record("the temporary directory \(url.path) stays: \(error)")
    }
  }
}

/// A key that all tests share: making one is slow, and nothing depends on which it is.
let testKey: SigningKey = {
  do { return try SigningKey.generate(.hs256) } catch {
    fatalError("no key for the tests: \(error)")
  }
}()

extension HubConfiguration {
  /// A hub in a directory, at a free port.
  static func test(_ directory: TemporaryDirectory) -> HubConfiguration {
    HubConfiguration(
      dataDirectory: directory.url.appending(path: "data", directoryHint: .isDirectory),
      keys: [testKey])
  }
}

/// Runs a hub for a test and stops it, whatever the test does.
func withHub(
  _ change: (inout HubConfiguration) -> Void = { _ in },
  _ body: (TestedHub) async throws -> Void
) async throws {
  let directory = try TemporaryDirectory()
  var configuration = HubConfiguration.test(directory)
  change(&configuration)
  try await withHub(configuration, body)
}

/// Runs a hub with a configuration, and stops it.
func withHub(
  _ configuration: HubConfiguration, now: (@Sendable () -> Double)? = nil,
  _ body: (TestedHub) async throws -> Void
) async throws {
  if TestedHub.Kind.current == .memory {
    return try await body(TestedHub(inMemory: configuration, now: now))
  }
  let hub =
    if let now {
      try await HubServer.start(configuration, now: now)
    } else {
      try await HubServer.start(configuration)
    }
  do {
    try await body(TestedHub(hub))
  } catch {
    try await hub.stop()
    throw error
  }
  try await hub.stop()
}

/// A client of one account that follows the protocol unless it is told otherwise.
struct TestClient: Sendable {
  let hub: TestedHub
  let account: AccountID
  let token: String
  let client = UUID()

  init(_ server: HubServer, _ account: String = "alice") throws {
    try self.init(TestedHub(server), account)
  }

  init(_ hub: TestedHub, _ account: String = "alice") throws {
    self.hub = hub
    self.account = try AccountID(account)
    token = try hub.token(for: self.account)
  }

  /// The headers of an ordinary request.
  var headers: [HeaderField] {
    [
      HeaderField("Host", "hub"), HeaderField("Authorization", "Bearer \(token)"),
      HeaderField("Holdfast-Account", PercentEncoding.encode(bytes: account.bytes)),
    ]
  }

  /// Sends a request with these headers in place of, or beside, the ordinary ones; nil leaves one
  /// out. `raw` is sent behind the head without a `Content-Length`.
  func send(
    _ method: String, _ target: String, _ changed: [String: String?] = [:], body: Data? = nil,
    raw: Data? = nil
  ) async throws -> RawAnswer {
    var fields = headers.filter { !changed.keys.contains($0.name) }
    for (name, value) in changed.sorted(by: { $0.key < $1.key }) {
      if let value { fields.append(HeaderField(name, value)) }
    }
    if let body { fields.append(HeaderField("Content-Length", String(body.count))) }
    return try await exchange(
      Data("\(method) \(target) HTTP/1.1\r\n".utf8), fields, body ?? raw,
      isHead: method == "HEAD")
  }

  /// A connection of its own on which a request was sent, and nothing read.
  func connection(
    _ target: String, _ added: [String: String] = [:], token: String? = nil
  ) throws -> RawConnection {
    let connection = try RawConnection(port: hub.url.port ?? 0)
    var head = "GET \(target) HTTP/1.1\r\n"
    var fields = headers + added.map { HeaderField($0.key, $0.value) }
    if let token { fields[1].value = "Bearer \(token)" }
    for field in fields {
      head += "\(field.name): \(field.value)\r\n"
    }
    connection.send(Data("\(head)\r\n".utf8))
    return connection
  }

  func exchange(
    _ requestLine: Data, _ fields: [HeaderField], _ body: Data?, isHead: Bool = false
  ) async throws -> RawAnswer {
    var bytes = requestLine
    for field in fields { bytes.append(Data("\(field.name): \(field.value)\r\n".utf8)) }
    bytes.append(Data("\r\n".utf8))
    if let body { bytes.append(body) }
    return try await hub.exchange(bytes, isHead: isHead)
  }

  func session() async throws -> SessionAnswer {
    try await send("GET", "/v1/session?nonce=\(UUID().wireText)").message(SessionAnswer.self)
  }

  /// Registers the client.
  @discardableResult
  func register(_ client: UUID? = nil, name: String = "test") async throws -> RawAnswer {
    try await send(
      "PUT", "/v1/clients/\((client ?? self.client).wireText)",
      ["Content-Type": "application/json"],
      body: ClientRegistration(name: name).encoded(as: .json))
  }

  func pull(
    after: UInt64 = 0, epoch: UUID, _ rest: String = "&limit=500",
    _ changed: [String: String?] = [:]
  ) async throws -> RawAnswer {
    try await send("GET", "/v1/changes?after=\(after)&epoch=\(epoch.wireText)\(rest)", changed)
  }

  func push(
    _ mutations: [WireMutation], epoch: UUID, cursor: UInt64 = 0, as format: WireFormat = .cbor,
    _ changed: [String: String?] = [:]
  ) async throws -> RawAnswer {
    let push = PushRequest(client: client, epoch: epoch, cursor: cursor, mutations: mutations)
    return try await send(
      "POST", "/v1/mutations",
      changed.merging(["Content-Type": format.rawValue]) { first, _ in first },
      body: push.encoded(as: format))
  }
}

extension HubServer {
  func untilWaiting(_ count: Int) async throws { try await TestedHub(self).untilWaiting(count) }

  func exchange(_ bytes: Data, isHead: Bool = false) async throws -> RawAnswer {
    try await TestedHub(self).exchange(bytes, isHead: isHead)
  }
}

extension ContentDigest {
  /// As it is stored.
  var bytes: [UInt8] {
    [high, low].flatMap { half in (0..<8).map { UInt8(truncatingIfNeeded: half >> (56 - 8 * $0)) } }
  }

  init(of mutation: WireMutation) {
    var hasher = SHA256Hasher()
    let id = mutation.id.bytes.span.bytes
    if let payload = mutation.payload {
      self.init(of: mutation.kind, id: id, payload: payload.span.bytes, by: &hasher)
    } else {
      self.init(of: mutation.kind, id: id, payload: nil, by: &hasher)
    }
  }
}

extension WireMutation {
  /// A put of a text.
  static func put(
    _ id: String, _ payload: String = "{}", order: UInt64 = 0, base: WireBase? = nil,
    firstSent: UInt64 = 0, mutation: UUID = UUID()
  ) -> WireMutation {
    WireMutation(
      mutation: mutation, order: order, kind: .put, id: RecordID(id), base: base,
      firstSent: firstSent, payload: Data(payload.utf8))
  }

  /// A delete.
  static func delete(
    _ id: String, order: UInt64 = 0, base: WireBase? = nil, firstSent: UInt64 = 0,
    mutation: UUID = UUID()
  ) -> WireMutation {
    WireMutation(
      mutation: mutation, order: order, kind: .delete, id: RecordID(id), base: base,
      firstSent: firstSent, payload: nil)
  }
}

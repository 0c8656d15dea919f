import Foundation
import HubClient
import HubProtocol
import HubServer
import ProfileStore
import ProfileSync
import SyncTestSupport
import Testing

/// What bad input gets: a typed error that names the thing, and nothing is lost.
@Suite("Bad input")
struct BadInputTests {
  /// A token that no hub takes.
  enum Token: String, CaseIterable, Sendable {
    case garbage
    case expired
    case notYet
    case foreignSigned
    case noAlgorithm
    case otherIssuer
    case otherAudience
    case tampered
    case empty
    case lineBreak

    func text(_ hub: TestHub) throws -> String {
      let alice = try AccountID("alice")
      let now = Int64(Date().timeIntervalSince1970)
      func issue(
        _ issuer: String = "holdfast", _ audience: String = "holdfast",
        _ key: SigningKey = testKey, at time: Int64 = now
      ) throws -> String {
        try TokenIssuer(issuer: issuer, audience: audience, key: key)
          .token(for: alice, issuedAt: time, lifetimeSeconds: 600)
      }
      switch self {
      case .garbage: return "no.token.at-all"
      case .expired: return try issue(at: now - 601)
      case .notYet: return try issue(at: now + 300)
      case .foreignSigned: return try issue("holdfast", "holdfast", .generate(.hs256))
      case .otherIssuer: return try issue("somebody")
      case .otherAudience: return try issue("holdfast", "somebody")
      case .empty: return ""
      case .lineBreak: return try issue() + "\r\nX-Other: header"
      case .noAlgorithm:
        let parts = try issue().split(separator: ".")
        let header = Data(#"{"alg":"none","typ":"JWT"}"#.utf8).base64EncodedString()
        return "\(header.filter { $0 != "=" }).\(parts[1])."
      case .tampered:
        let parts = try issue().split(separator: ".")
        let claims = try #require(Data(base64Encoded: Self.padded(parts[1])))
        let changed = String(decoding: claims, as: UTF8.self)
          .replacing("\"sub\":\"alice\"", with: "\"sub\":\"bob42\"")
        let payload = Data(changed.utf8).base64EncodedString().filter { $0 != "=" }
        return "\(parts[0]).\(payload).\(parts[2])"
      }
    }

    private static func padded(_ text: Substring) -> String {
      let base = text.replacing("-", with: "+").replacing("_", with: "/")
      return base + String(repeating: "=", count: (4 - base.count % 4) % 4)
    }
  }

  @Test(
    "a token that is wrong, expired, foreign-signed or missing verifies nobody",
    arguments: Token.allCases)
  func verify(token: Token) async throws {
    try await TestHub.run { hub in
      let device = try Device(hub)
      let error = await expect(.needsAuthentication) {
        _ = try await device.registry.verify(token: try token.text(hub))
      }
      #expect(error?.description.contains("eyJ") == false)
      #expect(device.wire.calls == [.session])
      #expect(try await device.registry.profiles().isEmpty)
    }
  }

  @Test(
    "a token that is wrong, expired, foreign-signed or missing stops a pass; nothing is lost",
    arguments: Token.allCases)
  func synchronize(token: Token) async throws {
    try await TestHub.run { hub in
      let person = try await Person.withRecords(hub, ["a"])
      try await person.write(["b"], "second")
      let before = try person.standing()
      person.device.session.replaceToken(try token.text(hub))
      for replay in [false, true] {
        await expect(.needsAuthentication) {
          try await person.profile.synchronize(account: person.account, replayFromStart: replay)
        }
      }
      #expect(person.device.wire.calls == [.session, .session])
      #expect(try person.standing() == before)
      person.device.session.replaceToken(try hub.token(for: "alice"))
      try await person.profile.synchronize(account: person.account)
      #expect(try person.profile.pendingSummary().isEmpty)
    }
  }

  @Test(
    "a hub that is not trusted, or whose address is wrong, needs a person, not patience",
    arguments: [
      (TransportError.Code.tlsFailed, SyncError.Code.hubNotTrusted),
      (.invalidURL, .badHubAddress),
    ])
  func needsPerson(_ cause: TransportError.Code, _ code: SyncError.Code) async throws {
    try await TestHub.run { hub in
      let person = try await Person.withRecords(hub, ["a"])
      person.device.wire.before { _, _ throws(TransportError) in
        throw TransportError(code: cause, description: "made by a test")
      }
      let error = await expect(code) {
        try await person.profile.synchronize(account: person.account)
      }
      #expect(error?.retryClass == .needsTheApp && error?.cause?.code == cause)
      let token = try hub.token(for: "alice")
      await expect(code) { _ = try await person.device.registry.verify(token: token) }
    }
  }

  @Test("a client's name beyond 256 bytes is refused before anything is sent")
  func longClientName() async throws {
    try await TestHub.run { hub in
      let device = try Device(hub)
      let token = try hub.token(for: "alice")
      let error = await expect(.refused) {
        _ = try await device.registry.verify(
          token: token, clientName: String(repeating: "\u{E9}", count: 128) + "x")
      }
      #expect(error?.message.contains("257") == true && error?.message.contains("256") == true)
      #expect(device.wire.requests.isEmpty)
      _ = try await device.registry.verify(
        token: token, clientName: String(repeating: "\u{E9}", count: 128))
    }
  }

  @Test("a hub that is not there is hubUnreachable, and nothing is lost")
  func notThere() async throws {
    try await TestHub.run { hub in
      let person = try await Person.withRecords(hub, ["a"])
      try await person.write(["b"], "second")
      let before = try person.standing()
      let port = try ClosedPort()
      person.device.registry.connect(to: try HubConnection(url: try port.url()))
      let error = await expect(.hubUnreachable) {
        try await person.profile.synchronize(account: person.account)
      }
      #expect(error?.cause?.code == .unreachable && error?.retryClass == .later)
      await expect(.hubUnreachable) {
        _ = try await person.device.registry.verify(token: try hub.token(for: "alice"))
      }
      port.release()
      #expect(try person.standing() == before)
      person.device.registry.connect(to: person.device.wire)
      try await person.profile.synchronize(account: person.account)
      #expect(try person.profile.pendingSummary().isEmpty)
    }
  }

  @Test(
    "a hub that answers HTML, a redirect or garbage is badAnswer, at every call",
    arguments: [200, 302, 404])
  func html(status: Int) async throws {
    try await TestHub.run { hub in
      let person = try await Person.withRecords(hub, ["a"])
      try await person.write(["b"], "second")
      let before = try person.standing()
      for call in [Call.session, .mutations, .changes] {
        person.device.wire.clear()
        person.device.wire.before { _, request throws(TransportError) in
          request.call == call
            ? .made(
              status, body: Data("<html>Log in to this network</html>".utf8),
              contentType: "text/html") : nil
        }
        let error = await expect(.badAnswer) {
          try await person.profile.synchronize(account: person.account)
        }
        #expect(error?.message.contains("status \(status)") == true)
        #expect(person.device.wire.calls.last == call)
        if call == .session {
          await expect(.badAnswer) {
            _ = try await person.device.registry.verify(token: try hub.token(for: "alice"))
          }
        }
        if call != .changes { #expect(try person.standing() == before) }
      }
      #expect(try person.texts() == ["a": "first", "b": "second"])
    }
  }

  @Test(
    "a 2xx of the hub that cannot be read is used in nothing",
    arguments: Call.allCases.filter { $0 != .events })
  func garbage(call: Call) async throws {
    try await TestHub.run { hub in
      let person = try await Device(hub, keeping: .app).signIn()
      let mutation = try await person.makeConflict()
      try await person.profile.discard(mutation, account: person.account)
      try await person.write(["b"], "second")
      let before = try person.standing()
      let broken: [@Sendable (inout HubResponse) -> Void] = [
        { $0.body = Data() }, { $0.body = Data($0.body.dropLast()) },
        { $0.body.append(0) }, { $0.body = Data("{}".utf8) },
        { $0.headers.removeAll { $0.name.lowercased() == "content-type" } },
      ]
      for change in broken {
        person.device.wire.clear()
        person.device.wire.after { _, request, response throws(TransportError) in
          if request.call == call { change(&response) }
        }
        if call == .clients {
          await expect(.badAnswer) {
            _ = try await person.device.registry.verify(token: try hub.token(for: "alice"))
          }
          continue
        }
        await expect(.badAnswer) { try await person.pass() }
        #expect(person.device.wire.calls.last == call)
      }
      let after = try person.standing()
      #expect(after.cursor == before.cursor)
      person.device.wire.clear()
      try await person.pass()
      #expect(person.app.texts == ["contested": "theirs", "b": "second"])
    }
  }

  @Test("head and body that name different epochs, hubs or questions are used in nothing")
  func contradiction() async throws {
    try await TestHub.run { hub in
      let person = try await Person.withRecords(hub, ["a"])
      let before = try person.standing()
      func expectBadAnswer(
        _ call: Call, _ change: @escaping @Sendable (inout HubResponse) -> Void
      ) async throws {
        person.device.wire.clear()
        person.device.wire.after { _, request, response throws(TransportError) in
          if request.call == call { change(&response) }
        }
        await expect(.badAnswer) {
          try await person.profile.synchronize(account: person.account)
        }
        #expect(try person.standing() == before)
      }
      try await expectBadAnswer(.session) { response in
        response.change(SessionAnswer.self) { $0.nonce = UUID() }
      }
      try await expectBadAnswer(.changes) { response in
        response.headers.removeAll { $0.name.lowercased() == "holdfast-epoch" }
      }
      try await expectBadAnswer(.changes) { response in
        response.headers.removeAll { $0.name.lowercased() == "holdfast-epoch" }
        response.headers.append(HeaderField(HubHeader.epoch, UUID().uuidString.lowercased()))
      }
    }
  }

  @Test("another account's page is a security event, and shows nothing of it")
  func othersPage() async throws {
    try await TestHub.run { hub in
      let alice = try await Person.withRecords(hub, ["a"], "CANARY-ALICE")
      let bob = try await Person.withRecords(hub, ["b", "c"], "CANARY-BOB", name: "bob")
      let before = try alice.standing()
      let token = try hub.token(for: "bob")
      // Something between mixes the connections up: Bob's whole answer comes to Alice's request.
      for call in [Call.session, .changes] {
        alice.device.wire.clear()
        alice.device.wire.before { _, request throws(TransportError) in
          guard request.call == call else { return nil }
          request.headers = [
            HeaderField(HubHeader.authorization, "Bearer \(token)"),
            HeaderField(HubHeader.account, "bob"),
            HeaderField(HubHeader.accept, "application/cbor"),
          ]
          return nil
        }
        for replay in [false, true] {
          await expect(.accountMismatch) {
            try await alice.profile.synchronize(account: alice.account, replayFromStart: replay)
          }
        }
      }
      var after = try alice.standing()
      after.scan = before.scan
      #expect(after == before)
      #expect(try alice.device.holds("CANARY-ALICE") && !alice.device.holds("CANARY-BOB"))
      #expect(try bob.device.holds("CANARY-BOB") && !bob.device.holds("CANARY-ALICE"))
    }
  }

  @Test("the answers of a verification that name two accounts make no verified account")
  func twoAccounts() async throws {
    try await TestHub.run { hub in
      let device = try Device(hub)
      for fault in ["other-account-body", "other-account-header"] {
        for call in [Call.session, .clients] {
          device.wire.clear()
          device.wire.ask(for: fault, at: call)
          await expect(.accountMismatch) {
            _ = try await device.registry.verify(token: try hub.token(for: "alice"))
          }
          #expect(device.wire.calls.last == call)
        }
      }
      #expect(try await device.registry.profiles().isEmpty)
    }
  }
}

/// A port that is taken, so that nobody else gets it, and at which nobody listens.
private final class ClosedPort {
  private let descriptor: Int32

  init() throws {
    descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    try #require(descriptor >= 0)
    var address = try Self.loopback()
    let length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isBound = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, length) }
    }
    try #require(isBound == 0)
  }

  private static func loopback() throws -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    try #require(inet_pton(AF_INET, "127.0.0.1", &address.sin_addr) == 1)
    return address
  }

  func url() throws -> URL {
    var address = sockaddr_in()
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isNamed = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        getsockname(descriptor, $0, &length)
      }
    }
    try #require(isNamed == 0)
    return try #require(URL(string: "http://127.0.0.1:\(UInt16(bigEndian: address.sin_port))"))
  }

  func release() { close(descriptor) }
}

extension Device {
  /// Whether a file of the store, or of a directory in it, has the text.
  func holds(_ text: String, below path: String? = nil) throws -> Bool {
    let wanted = Data(text.utf8)
    let place = path.map { URL(filePath: $0) } ?? directory.url
    let files = FileManager.default.enumerator(at: place, includingPropertiesForKeys: nil)
    while let file = files?.nextObject() as? URL {
      // Opening and closing a lock file in this process would drop LMDB's locks on it.
      guard file.lastPathComponent == "data.mdb" else { continue }
      if try Data(contentsOf: file).range(of: wanted) != nil { return true }
    }
    return false
  }
}

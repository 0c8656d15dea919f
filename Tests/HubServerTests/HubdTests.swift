import Foundation
import HubProtocol
import HubServer
import Testing

@Suite("hubd on the command line")
struct HubdTests {
  private let directory: TemporaryDirectory
  private var data: String { directory.url.appending(path: "data").path }
  private var key: String { directory.url.appending(path: "key.jwk").path }

  init() throws { directory = try TemporaryDirectory() }

  @Test("makes a key that only its owner may read, and never replaces one")
  func keys() async throws {
    let made = try await HubProcess.run(["key", "--algorithm", "ES256", "--out", key])
    #expect(made.status == 0)
    let attributes = try FileManager.default.attributesOfItem(atPath: key)
    #expect(attributes[.posixPermissions] as? Int == 0o600)
    let before = try Data(contentsOf: URL(filePath: key))
    let again = try await HubProcess.run(["key", "--out", key])
    #expect(again.status == 73)
    #expect(try Data(contentsOf: URL(filePath: key)) == before)
  }

  @Test("serves, issues tokens that it accepts, and stops in order when it is interrupted")
  func serves() async throws {
    _ = try await HubProcess.run(["key", "--out", key])
    let hub = try await HubProcess(["--key", key, "--data", data, "--port", "0"])
    let issued = try await HubProcess.run(
      ["token", "--key", key, "--account", "al/ice", "--ttl", "60"])
    #expect(issued.status == 0)
    let token = issued.output.trimmingCharacters(in: .newlines)
    let port = hub.url.port ?? 0
    let request =
      "GET /v1/session?nonce=\(UUID().wireText) HTTP/1.1\r\nHost: h\r\n"
      + "Authorization: Bearer \(token)\r\n\r\n"
    let answer = try await blocking {
      let connection = try RawConnection(port: port)
      connection.send(Data(request.utf8))
      return try connection.receive()
    }
    #expect(try answer.message(SessionAnswer.self).account == AccountID("al/ice"))
    let second = try await HubProcess.run(
      ["serve", "--key", key, "--data", data, "--port", "0"])
    #expect(second.status == 75)
    #expect(second.output.contains("another hub serves \(data)"))
    #expect(second.output.split(separator: "\n").count == 1)
    #expect(try await hub.end(by: SIGTERM) == 0)
  }

  @Test(
    "stops in order when it is interrupted as soon as it listens", arguments: [SIGTERM, SIGINT])
  func interruptedAtOnce(signal: Int32) async throws {
    _ = try await HubProcess.run(["key", "--out", key])
    for _ in 0..<12 {
      let hub = try await HubProcess(["--key", key, "--data", data, "--port", "0"])
      #expect(try await hub.end(by: signal) == 0)
    }
  }

  @Test("says in one sentence what is wrong, and with which code")
  func failures() async throws {
    let wrong: [(arguments: [String], status: Int32, words: String)] = [
      (["serve"], 64, "--config"), (["serve", "--port", "70000"], 64, "70000"),
      (["bogus"], 64, "bogus"), (["token", "--key", key], 64, "account"),
      (["check-config", "/no/such/file"], 78, "/no/such/file"),
      (["serve", "--key", "/no/such/key"], 78, "/no/such/key"),
    ]
    for (arguments, status, words) in wrong {
      let result = try await HubProcess.run(arguments)
      #expect(result.status == status, "\(arguments)")
      #expect(result.output.contains(words), "\(result.output)")
    }
    _ = try await HubProcess.run(["key", "--out", key])
    let account = String(repeating: "a", count: 257)
    let tooLong = try await HubProcess.run(["token", "--key", key, "--account", account])
    #expect(tooLong.status == 64)
    #expect(tooLong.output.contains("257 bytes"))
  }

  @Test("documents every exit code in its help")
  func help() async throws {
    let help = try await HubProcess.run(["--help"])
    #expect(help.status == 0)
    for code in ["0 ", "64", "65", "69", "70", "73", "75", "78"] {
      #expect(help.output.contains("\n  \(code)  "), "\(code)")
    }
  }
}

@Suite("A hub that is killed while clients push", .timeLimit(.minutes(2)))
struct KilledHubTests {
  private static let roundCount = 4

  @Test("keeps every mutation that it acknowledged, and its epochs, round after round")
  func killed() async throws {
    let directory = try TemporaryDirectory()
    let data = directory.url.appending(path: "data").path
    let key = directory.url.appending(path: "key.jwk")
    try SigningKey.generate(.hs256).privateJWK().write(to: key)
    let issuer = try TokenIssuer(
      issuer: "holdfast", audience: "holdfast",
      key: try #require(try SigningKey.read(file: key).first))
    let pushers = try (0..<4).map { try Pusher(account: "account-\($0)", issuer: issuer) }
    for round in 0..<Self.roundCount {
      let hub = try await HubProcess(["--key", key.path, "--data", data, "--port", "0"])
      let port = hub.url.port ?? 0
      for pusher in pushers { try await blocking { try pusher.verify(port: port) } }
      // Each pushes until the hub is gone; the hub is killed once enough is under way.
      await withTaskGroup { group in
        for pusher in pushers {
          group.addTask { await blockingToTheEnd { pusher.push(port: port) } }
        }
        await pushers[0].waitUntil(acknowledged: (round + 1) * 20)
        do { #expect(try await hub.end(by: SIGKILL) == -SIGKILL) } catch {
          Issue.record("the hub cannot be ended: \(error)")
        }
      }
    }
    let hub = try await HubProcess(["--key", key.path, "--data", data, "--port", "0"])
    let port = hub.url.port ?? 0
    for pusher in pushers { try await blocking { try pusher.verify(port: port) } }
    #expect(try await hub.end(by: SIGTERM) == 0)
  }
}

/// Runs blocking work that ends by itself.
private func blockingToTheEnd(_ body: @escaping @Sendable () -> Void) async {
  await withCheckedContinuation { continuation in
    Thread.detachNewThread {
      body()
      continuation.resume()
    }
  }
}

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
    #expect(try await HubProcess.run(["serve", "--key", "/no"]).output.contains("hubd key"))
    _ = try await HubProcess.run(["key", "--out", key])
    let account = String(repeating: "a", count: 257)
    let tooLong = try await HubProcess.run(["token", "--key", key, "--account", account])
    #expect(tooLong.status == 64)
    #expect(tooLong.output.contains("257 bytes"))
  }

  @Test("says in the system's own words why a file cannot be used, and nothing for programmers")
  func files() async throws {
    _ = try await HubProcess.run(["key", "--out", key])
    let file = directory.url.appending(path: "file").path
    try Data("x".utf8).write(to: URL(filePath: file))
    let damaged = directory.url.appending(path: "damaged")
    try FileManager.default.createDirectory(at: damaged, withIntermediateDirectories: true)
    try Data("{".utf8).write(to: damaged.appending(path: "run.json"))
    let erasures = directory.url.appending(path: "erasures")
    try FileManager.default.createDirectory(at: erasures, withIntermediateDirectories: true)
    try Data("{}\n".utf8).write(to: erasures.appending(path: "erasures.jsonl"))
    let wrong: [(arguments: [String], status: Int32, words: String)] = [
      (["check-config", "/no/file"], 78, "/no/file cannot be read; check its path and rights (No"),
      (["serve", "--key", "/no/key"], 78, "(No such file or directory)"),
      (["serve", "--key", directory.url.path], 78, "cannot be read; check its path and rights"),
      (["serve", "--key", key, "--data", file], 73, "File exists"),
      (["serve", "--key", key, "--data", file + "/d"], 73, "/file/d cannot be made"),
      (["serve", "--key", key, "--data", damaged.path], 65, "run.json cannot be understood"),
      (["serve", "--key", key, "--data", erasures.path], 65, "erasures.jsonl has a line"),
    ]
    for (arguments, status, words) in wrong {
      let result = try await HubProcess.run(arguments)
      #expect(result.status == status, "\(arguments)")
      #expect(result.output.contains(words), "\(result.output)")
      #expect(result.output.split(separator: "\n").count == 1, "\(result.output)")
      for word in ["Domain", "Error", "Optional", "{"] {
        #expect(!result.output.contains(word), "\(result.output)")
      }
    }
  }

  /// The thread sanitizer maps files of its own, which a limit on files turns into a crash.
  private static let isThreadSanitized = dlsym(nil, "__tsan_init") != nil

  @Test(
    "leaves no file behind when a key cannot be written", .enabled(if: !isThreadSanitized))
  func keyOnFullDisk() async throws {
    // A file of 0 bytes is the longest that this shell and what it starts may write.
    let script = #"trap '' XFSZ; ulimit -f 0; exec "$0" key --out "$1""#
    let made = try await HubProcess.run(
      ["-c", script, HubProcess.executable.path, key], of: URL(filePath: "/bin/sh"))
    #expect(made.status == 74)
    #expect(made.output == "hubd: \(key) cannot be written; check the space there\n")
    #expect(!FileManager.default.fileExists(atPath: key))
  }

  @Test("warns of what is for tests only, before it starts")
  func warnings() async throws {
    _ = try await HubProcess.run(["key", "--out", key])
    let file = directory.url.appending(path: "hub.json")
    // The data directory is a file, so that it ends by itself.
    let text = #"""
      {"dataDirectory": "key.jwk", "tokens": {"keys": [{"file": "key.jwk"}]},
       "faults": {"enabled": true}, "debug": {"captureDirectory": "captured"}}
      """#
    try Data(text.utf8).write(to: file)
    let result = try await HubProcess.run(["serve", "--config", file.path])
    let lines = result.output.split(separator: "\n")
    #expect(lines.count == 3)
    #expect(lines.first?.hasPrefix("hubd: faults.enabled is on") == true)
    #expect(lines.dropFirst().first?.hasPrefix("hubd: debug.captureDirectory keeps") == true)
  }

  @Test("documents every exit code that it ends with, and no other")
  func help() async throws {
    let help = try await HubProcess.run(["--help"])
    #expect(help.status == 0)
    let codes = help.output.split(separator: "EXIT CODES:\n").last?.split(separator: "\n")
      .filter { $0.hasPrefix("  ") && !$0.hasPrefix("   ") }.map { $0.prefix(4) }
    #expect(
      codes == ["  0 ", "  64", "  65", "  69", "  70", "  73", "  74", "  75", "  78"])
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

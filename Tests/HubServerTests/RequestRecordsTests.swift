import Foundation
import HubProtocol
import HubServer
import Testing

@Suite("What a hub writes about requests")
struct RequestRecordsTests {
  @Test("is one line each in the log, without account, token, value or payload")
  func log() async throws {
    let directory = try TemporaryDirectory()
    let file = directory.url.appending(path: "requests.jsonl")
    try await withHub {
      $0.requestLog = file
    } _: { hub in
      let alice = try TestClient(hub, "canary-account")
      let epoch = try await alice.session().epoch
      try await alice.register(name: "canary-name")
      _ = try await alice.push([.put("canary-id", "canary-payload")], epoch: epoch)
      _ = try await alice.send("GET", "/v1/records?id=canary-id&canary")
      _ = try await alice.send("GET", "/v1/records?id=canary-id", ["Authorization": nil])
    }
    let text = try String(contentsOf: file, encoding: .utf8)
    let lines = text.split(separator: "\n")
    #expect(lines.count == 5)
    #expect(text.components(separatedBy: "canary").count == 2, "only the name of a parameter")
    #expect(lines[3].contains(#""path":"/v1/records?id&canary""#))
    #expect(lines[3].contains(#""status":200"#))
    #expect(lines[4].contains(#""status":401"#))
    let accounts = try lines.map { line in
      try #require(
        JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])["account"]
        as? String
    }
    #expect(Set(accounts[..<4]).count == 1 && accounts[0] != nil && accounts[4] == nil)
  }

  @Test("stays when the hub starts again and captures on")
  func captureGoesOn() async throws {
    let directory = try TemporaryDirectory()
    var configuration = HubConfiguration.test(directory)
    let captured = directory.url.appending(path: "captured", directoryHint: .isDirectory)
    configuration.captureDirectory = captured
    for name in ["first", "second"] {
      try await withHub(configuration) { try await TestClient($0).register(name: name) }
    }
    var text = Data()
    let files = try #require(
      FileManager.default.enumerator(at: captured, includingPropertiesForKeys: nil))
    for case let file as URL in files where file.pathExtension == "request" {
      text.append(try Data(contentsOf: file))
    }
    for name in ["first", "second"] { #expect(text.range(of: Data(name.utf8)) != nil) }
  }

  @Test("is each body, under the account that sent it, only where capturing was asked for")
  func capture() async throws {
    let directory = try TemporaryDirectory()
    let captured = directory.url.appending(path: "captured", directoryHint: .isDirectory)
    try await withHub {
      $0.captureDirectory = captured
    } _: { hub in
      for name in ["alice", "bob"] {
        let client = try TestClient(hub, name)
        let epoch = try await client.session().epoch
        try await client.register()
        _ = try await client.push([.put("r", "canary of \(name)")], epoch: epoch)
        // Refused before it is read.
        _ = try await client.push(
          [.put("r", "refused canary")], epoch: epoch, ["Holdfast-Account": "carol"])
      }
    }
    let manager = FileManager.default
    let directories = try manager.contentsOfDirectory(
      at: captured, includingPropertiesForKeys: nil)
    #expect(directories.count == 2)
    for own in directories {
      let name = try String(contentsOf: own.appending(path: "account"), encoding: .utf8)
      var text = Data()
      for file in try manager.contentsOfDirectory(at: own, includingPropertiesForKeys: nil) {
        text.append(try Data(contentsOf: file))
      }
      for other in ["alice", "bob", "carol"] {
        let isThere = text.range(of: Data("canary of \(other)".utf8)) != nil
        #expect(isThere == (other == name))
      }
      #expect(text.range(of: Data("refused canary".utf8)) == nil)
      #expect(text.range(of: Data("POST /v1/mutations\n\n".utf8)) != nil)
    }
  }
}

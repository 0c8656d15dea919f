import Foundation
import Holdfast
import ToolSupport

/// The hub of the story and what is needed to talk to it.
struct StoryHub {
  let process: HubProcess
  let connection: any HubTransport
  let tokens: (ada: String, bob: String)
}

/// One device: a store directory, a session, an account that is verified.
final class Device {
  let directory: URL
  let session = AppSession()
  let registry: ProfileRegistry
  var ada: VerifiedAccount?

  init(_ directory: URL, hub: any HubTransport) throws {
    self.directory = directory
    session.signOut()
    registry = try ProfileRegistry(directory: directory, session: session)
    registry.connect(to: hub)
  }

  func requireAda() throws -> VerifiedAccount {
    guard let ada else { throw StoryFailure(sentence: "Ada has signed in") }
    return ada
  }
}

extension Story {
  /// 1. A hub on loopback, with a key made for the run.
  func startHub() async throws -> StoryHub {
    try begin("A hub on this machine, with a signing key made for this run")
    let key = directory.appending(path: "hub-key.jwk").path
    _ = try ChildProcess.output(hubd, ["key", "--algorithm", "ES256", "--out", key])
    let configuration = directory.appending(path: "hub.json")
    let settings: [String: Any] = [
      "dataDirectory": directory.appending(path: "hub").path,
      "listen": ["port": 0],
      "tokens": ["keys": [["file": key, "algorithms": ["ES256"]]]],
      "requestLog": ["file": directory.appending(path: "requests.jsonl").path],
      "debug": ["captureDirectory": directory.appending(path: "captured").path],
    ]
    try JSONSerialization.data(withJSONObject: settings).write(to: configuration)
    let process = try HubProcess(hubd: hubd, configuration: configuration.path)
    let connection = try HubConnection(url: process.url)
    let health = try await connection.send(HubRequest(method: "GET", target: "/healthz"))
    try state("hubd listens at \(process.url.absoluteString) and is healthy", health.status == 200)
    let tokens = (
      ada: try token("ada", configuration), bob: try token("bob", configuration)
    )
    try state(
      "hubd token has issued tokens for ada and for bob", !tokens.ada.isEmpty && !tokens.bob.isEmpty
    )
    let recorded = try Recorded(
      connection, into: directory.appending(path: "sent"),
      owners: [tokens.ada: "ada", tokens.bob: "bob"])
    return StoryHub(process: process, connection: recorded, tokens: tokens)
  }

  private func token(_ account: String, _ configuration: URL) throws -> String {
    try ChildProcess.output(
      hubd, ["token", "--config", configuration.path, "--account", account]
    ).trimmingCharacters(in: .whitespacesAndNewlines)
  }

  func firstDevice(_ hub: StoryHub) async throws -> Device {
    try Device(directory.appending(path: "device-1"), hub: hub.connection)
  }
}

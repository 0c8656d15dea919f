import Foundation
import HubServer
import Testing

@Suite("A configuration file")
struct ConfigurationTests {
  private let directory: TemporaryDirectory
  private var file: URL { directory.url.appending(path: "hub.json") }

  init() throws {
    directory = try TemporaryDirectory()
    let key = try SigningKey.read(jwk: testKey.privateJWK(), source: "a test")
    try #require(key.first).privateJWK().write(to: directory.url.appending(path: "key.jwk"))
  }

  private func read(_ text: String) throws -> HubConfiguration {
    try Data(text.utf8).write(to: file)
    return try HubConfiguration.read(from: file)
  }

  private static let least = #"{"dataDirectory":"d","tokens":{"keys":[{"file":"key.jwk"}]}}"#

  @Test("that says only what it must has the documented defaults, and paths from its directory")
  func defaults() throws {
    let configuration = try read(Self.least)
    #expect(configuration.dataDirectory.path == directory.url.appending(path: "d").path)
    #expect(configuration.listen == HubConfiguration.Listen())
    #expect(configuration.tokens.issuer == "holdfast")
    #expect(configuration.tokens.keys.map(\.algorithms) == [[.hs256]])
    #expect(configuration.requestLog == nil)
    #expect(!configuration.faultsEnabled)
    #expect(configuration.captureDirectory == nil)
  }

  @Test("that ships is valid, and its defaults are those of the library")
  func shipped() throws {
    let config = URL(filePath: #filePath).deletingLastPathComponent()
      .appending(path: "../../Config", directoryHint: .isDirectory).standardizedFileURL
    let text = try Data(contentsOf: config.appending(path: "hub.json"))
    try text.write(to: file)
    try SigningKey.generate(.es256).privateJWK()
      .write(to: directory.url.appending(path: "hub-key.jwk"))
    let shipped = try HubConfiguration.read(from: file)
    let defaults = try read(Self.least)
    #expect(shipped.limits == defaults.limits)
    #expect(shipped.storeByteCountMax == defaults.storeByteCountMax)
    #expect(shipped.tokens.issuer == defaults.tokens.issuer)
    #expect(shipped.tokens.audience == defaults.tokens.audience)
    var listen = shipped.listen
    listen.port = defaults.listen.port
    #expect(listen == defaults.listen)
    // Every key is explained.
    let explained = try String(contentsOf: config.appending(path: "README.md"), encoding: .utf8)
    for key in Self.keys(in: try JSONSerialization.jsonObject(with: text), "") {
      #expect(explained.contains("| `\(key)` |"), "\(key) has no row")
    }
  }

  private static func keys(in value: Any, _ path: String) -> [String] {
    switch value {
    case let object as [String: Any]:
      object.flatMap { keys(in: $1, path.isEmpty ? $0 : "\(path).\($0)") }
    case let list as [Any] where list.first is [String: Any]:
      list.flatMap { keys(in: $0, path + "[]") }
    default: [path]
    }
  }

  @Test(
    "with a slip of the pen is refused with the key's name",
    arguments: [
      (#"{"tokens":{"keys":[{"file":"key.jwk"}]}}"#, "dataDirectory"),
      (#"{"dataDirectory":"d"}"#, "tokens.keys"),
      (#"{"dataDirectory":"d","tokens":{"keys":[]}}"#, "tokens.keys"),
      (#"{"dataDirectory":"d","tokens":{"keys":[{}]}}"#, "tokens.keys.0.file"),
      (#"{"dataDirectory":"d","tokens":{"keys":"key.jwk"}}"#, "tokens.keys"),
      (#"{"dataDirectory":7,"tokens":{"keys":[{"file":"key.jwk"}]}}"#, "dataDirectory"),
      (least.replacing(":\"d\"", with: ":\"\""), "dataDirectory is empty"),
      (least.replacing("key.jwk", with: ""), "tokens.keys.0.file is empty"),
      (with(#""requestLog":{"file":""}"#), "requestLog.file is empty"),
      (with(#""debug":{"captureDirectory":""}"#), "debug.captureDirectory is empty"),
      (least.replacing("}]}}", with: #","algorithms":["none"]}]}}"#), "algorithms"),
      (with(#""limit":{}"#), "limit "), (with(#""limits":{"pullrecords":1}"#), "pullrecords"),
      (with(#""limits":{"pullRecords":501}"#), "limits.pullRecords"),
      (with(#""limits":{"pullRecords":1.5}"#), "limits.pullRecords"),
      (with(#""limits":{"payloadBytes":16777217}"#), "limits.payloadBytes"),
      (with(#""limits":{"pushBytes":100000}"#), "limits.pushBytes"),
      (with(#""listen":{"port":65536}"#), "listen.port"),
      (with(#""listen":{"port":"80"}"#), "listen.port"),
      (with(#""faults":{"enabled":1}"#), "faults.enabled"),
      (with(#""hubID":"x""#), "hubID"), (with(#""tokens":{}"#), "twice"), ("[]", "JSON object"),
      (" ", "JSON object"),
    ])
  func refused(text: String, name: String) throws {
    let error = #expect(throws: HubServerError.self) { try read(text) }
    #expect(error?.code == .configurationInvalid)
    #expect(error?.message.contains(name) ?? false, "\(error?.message ?? "")")
    #expect(error?.message.contains("hub.json") ?? false)
  }

  private static func with(_ member: String) -> String {
    least.dropLast() + "," + member + "}"
  }

  @Test("that names a key file which is not there, or no key, is refused with that file's name")
  func keyFiles() throws {
    for name in ["missing.jwk", "hub.json"] {
      let text = Self.least.replacing("key.jwk", with: name)
      let error = #expect(throws: HubServerError.self) { try read(text) }
      #expect(error?.code == .keyInvalid)
      #expect(error?.message.contains(name) ?? false)
    }
    let missing = #expect(throws: HubServerError.self) {
      try HubConfiguration.read(from: directory.url.appending(path: "none.json"))
    }
    #expect(missing?.code == .configurationInvalid)
  }
}

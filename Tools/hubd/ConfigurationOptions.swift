import Foundation
import HubServer
import ToolSupport

/// The options from which a configuration comes: a file, or a key and defaults, and what overrides.
enum ConfigurationOptions {
  static let config = Option.optional(
    "config", short: "c", .path.named("file"),
    help: "The configuration; without it there are defaults, and --key must be given.")
  static let key = Option.optional(
    "key", short: "k", .path.named("file"),
    help: "A JWK in place of the keys of the configuration.")
  static let data = Option.optional(
    "data", short: "d", .path.named("directory"),
    help: "A data directory in place of the configuration's.")
  static let port = Option.optional(
    "port", short: "p", .integer(in: 0...65_535).named("port"),
    help: "A port in place of the configuration's; 0 takes a free one.")

  /// The configuration that a file and a key say.
  static func configuration(file: String?, key: String?) throws -> HubConfiguration {
    let keys = try key.map { try SigningKey.read(file: URL(filePath: $0)) }
    if let file {
      var configuration = try HubConfiguration.read(from: URL(filePath: file))
      if let keys { configuration.tokens.keys = keys }
      return configuration
    }
    guard let keys else {
      throw UsageError("say where the keys are: --config, or --key and defaults")
    }
    return HubConfiguration(
      dataDirectory: URL(filePath: "hub-data", directoryHint: .isDirectory), keys: keys)
  }
}

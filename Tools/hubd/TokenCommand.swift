import Foundation
import HubServer
import ToolSupport

/// `hubd token`.
enum TokenCommand {
  static let account = Option.required(
    "account", short: "a", .string.named("id"),
    help: "The account's ID, 1 to 256 bytes, taken byte for byte.")
  static let lifetime = Option.defaulted(
    "ttl", short: "t", .integer(in: 1...315_360_000).named("seconds"), to: 3_600,
    help: "How long the token is valid, in seconds.")

  static let command = Command(
    "token", summary: "Issues a token for an account, for development and tests.",
    discussion: "The first key of the configuration signs; it must have its secret part.",
    parameters: [ConfigurationOptions.config, ConfigurationOptions.key, account, lifetime],
    examples: [
      .init("hubd token --config hub.json --account alice --ttl 60", "A token for a minute.")
    ]
  ) { invocation in
    let configuration = try ConfigurationOptions.configuration(
      file: invocation[ConfigurationOptions.config], key: invocation[ConfigurationOptions.key])
    let token = try configuration.tokenIssuer().token(
      forAccountID: invocation[account], issuedAt: Int64(Date().timeIntervalSince1970),
      lifetimeSeconds: Int64(invocation[lifetime]))
    try invocation.console.print(token)
    return .ok
  }
}

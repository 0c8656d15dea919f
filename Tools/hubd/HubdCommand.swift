import ToolSupport

/// `hubd` and its subcommands.
enum HubdCommand {
  static let root = Command(
    "hubd", summary: "Serves records to the devices of accounts, and makes keys and tokens for it.",
    discussion: """
      A hub needs a key that verifies tokens and a directory for its data. Every key of a \
      configuration file is explained in Config/README.md.
      """,
    examples: [
      .init("hubd key --algorithm ES256 --out hub-key.jwk", "Makes a signing key."),
      .init("hubd serve --config hub.json", "Serves until it is interrupted."),
      .init("hubd token --config hub.json --account alice", "Issues a token for an hour."),
    ],
    subcommands: [
      ServeCommand.command, KeyCommand.command, TokenCommand.command, CheckCommand.command,
    ])
}

import ToolSupport

/// `profilectl`: its commands, and what each of them accepts.
enum ProfilectlTool {
  /// The tool; a test runs it on a console of its own.
  static let tool = Tool(
    root, version: "0.1.0", meanings: StoreFailure.meanings, translate: StoreFailure.translate)

  static let root = Command(
    "profilectl", summary: "Looks at the profiles of a store, also while apps have it open.",
    discussion: """
      Nothing is ever made, changed or locked, but for a reader's slot in a file 'lock.mdb' that \
      is there. Payloads are shown only with 'outbox --payload'. \
      Account IDs are shortened to their first characters and a short hash of hub and ID, as in \
      'ali…#1f3a9c07', unless --reveal is given: the same account has the same hash in every \
      store. It tells accounts apart; it does not keep a secret.

      With --json every member is always there: null where nothing is known. Times are in UTC. \
      Members may be added, but none changes its meaning.
      """,
    parameters: [store, json, reveal],
    examples: [
      .init("profilectl --store DIR list", "Lists the profiles."),
      .init("profilectl --store DIR show 1f3a", "Shows the profile whose ID begins with 1f3a."),
      .init("profilectl --store DIR outbox 1f3a --json", "Prints as JSON what it has to send."),
    ],
    subcommands: [ListCommand.command, ShowCommand.command, OutboxCommand.command])

  static let store = Option.required(
    "store", short: "s", .path.named("directory"), help: "The store's directory.")
  static let json = Flag("json", short: "j", help: "Print JSON instead of text.")
  static let reveal = Flag("reveal", help: "Show account IDs in full.")
  static let profile = Argument.required(
    "profile", ProfileID.format,
    help: "A profile's ID as 'list' shows it, or its first digits: 4 or more that fit only one.")
}

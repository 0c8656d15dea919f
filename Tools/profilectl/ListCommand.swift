import ToolSupport

/// `profilectl list`.
enum ListCommand {
  static let command = Command(
    "list", summary: "Lists every profile of the store.",
    discussion: """
      A profile that cannot be read is listed as 'unreadable' with the reason below the table, and \
      the exit code says so. A terminal that is too narrow gets shorter IDs and fewer columns.

      States: 'owned' by an account; 'unowned', the signed-out area; 'set aside', declined and \
      kept; 'frozen', an adoption was begun; 'moved', adopted by an account; 'erased', its files \
      go when no process holds them; 'unreadable'; 'missing', only the registry names it.

      JSON: {"profiles": [...], "registryProblem": ...}. A profile has these members:
      profile: its ID, 32 hexadecimal digits.
      state: owned, unowned, setAside, frozen, moved, erased, unreadable or missing.
      owner: {hub, account, accountShort}; account is null without --reveal.
      records: how many records it keeps.
      knownRecords: of how many the version at the hub is known, deleted ones included.
      pending: {count, parked, payloadBytes, oldest} of the outbox; parked ones count as pending.
      cursor: {epoch, sequence}; everything up to it was applied.
      usedBytes: bytes of its data file in use.
      createdAt: when it was made.
      lastPass: {endedAt, isComplete, message} of the last synchronization.
      client: its client ID at the hub.
      problem: why it cannot be read, or what the registry says otherwise.
      """,
    examples: [
      .init("profilectl --store DIR list --json", "Lists the profiles as JSON.")
    ]
  ) { invocation in
    let survey = try StoreReader(invocation).survey()
    let reveals = invocation[ProfilectlTool.reveal]
    if invocation[ProfilectlTool.json] {
      try invocation.console.printJSON(ListJSON(survey, revealsAccounts: reveals))
    } else {
      let text = ListText(survey, revealsAccounts: reveals)
      try invocation.console.print(text.lines(width: invocation.console.width))
    }
    return try survey.verdict()
  }
}

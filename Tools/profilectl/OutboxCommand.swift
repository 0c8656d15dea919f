import ProfileStore
import ToolSupport

/// `profilectl outbox`.
enum OutboxCommand {
  static let payload = Flag(
    "payload", help: "Show payloads, too: as text where they are UTF-8, else as base64.")
  static let limit = Option.optional(
    "limit", short: "n", .integer(in: 1...1_000_000_000),
    help: "Show no more than this many, the oldest first.")

  static let command = Command(
    "outbox", summary: "Lists what a profile has not sent yet, in the order of sending.",
    discussion: """
      States: 'pending', sent by the next pass; 'sent', without an answer yet; 'held', since \
      the hub fails on it, and tried again by itself; 'waiting', behind a parked or held one \
      of its record; 'parked' with its reason, not sent by itself. The base of a change is the \
      record's version that it was made from, 'new' if there must be no record yet, or the \
      earlier change that it follows; '-' means that the last writer wins.

      JSON: {profile, state, entries, isTruncated}; state is the profile's, isTruncated says that \
      --limit left some out. An entry has these members:
      order: its place, growing.
      mutation: its ID.
      isCallerGiven: the app gave the ID and strikes it off.
      kind: put or delete.
      record: the record's ID.
      base: {kind, version, mutation}; kind is version, mustNotExist or mutation.
      account: {hub, account, accountShort} under which it was enqueued; null: signed out.
      enqueuedAt: when, by the device's clock.
      firstSent: the hub's sequence that was known when it was first sent.
      state: pending, sent, held, waiting or parked.
      held: {attempts, nextTry}: how often the hub has failed on it alone, and when it is tried \
      again.
      parked: {reason, code, current}; reason is conflict, rejected, tooLarge, adopted or \
      discarding, code is the hub's, current is the record at the hub: {version, isDeleted, \
      isPayloadOmitted, payload}.
      payloadBytes: the length of a put's payload.
      payload: base64, with --payload; else null.
      """,
    parameters: [payload, limit, ProfilectlTool.profile],
    examples: [
      .init("profilectl --store DIR outbox 1f3a --limit 20", "Lists the 20 oldest changes.")
    ]
  ) { invocation in
    let store = try StoreReader(invocation)
    let profile = try store.profile(named: invocation[ProfilectlTool.profile])
    try requireOutbox(of: profile)
    let limit = invocation[limit] ?? Int.max - 1
    // One more than is shown tells whether there are more.
    let rows = try store.outbox(
      of: profile.area, limit: limit + 1, keepsPayloads: invocation[payload])
    let listing = OutboxListing(
      profile: profile, rows: Array(rows.prefix(limit)), isTruncated: rows.count > limit,
      revealsAccounts: invocation[ProfilectlTool.reveal])
    if invocation[ProfilectlTool.json] {
      try invocation.console.printJSON(OutboxJSON(listing))
    } else {
      try invocation.console.print(OutboxText(listing).lines(width: invocation.console.width))
    }
    if let failure = profile.failure { throw failure }
    return .ok
  }

  private static func requireOutbox(of profile: ProfileInfo) throws {
    switch profile.state {
    case .erased:
      throw ToolFailure(
        .checkFailed, "the profile \(profile.area) was erased: nothing of it is shown")
    case .missing, .unreadable:
      if let failure = profile.failure { throw failure }
    case .owned, .unowned, .setAside, .frozen, .moved: break
    }
  }
}

/// What `profilectl outbox` shows.
struct OutboxListing: Sendable {
  var profile: ProfileInfo
  var rows: [OutboxRow]
  var isTruncated: Bool
  var revealsAccounts: Bool

  init(
    profile: ProfileInfo, rows: [OutboxRow], isTruncated: Bool, revealsAccounts: Bool
  ) {
    self.profile = profile
    self.rows = rows
    self.isTruncated = isTruncated
    self.revealsAccounts = revealsAccounts
  }
}

import ProfileStore
import ToolSupport

/// `profilectl show`.
enum ShowCommand {
  static let command = Command(
    "show", summary: "Shows everything that is known of one profile.",
    discussion: """
      No payload and no record ID is shown. Of an erased, missing or unreadable profile only what \
      lies outside it is shown.

      JSON: the members of a profile in 'list --json', and these:
      directory: the area's directory.
      files: [{name, bytes}] below it; lock files are sparse, their length takes no room.
      registry: {state, intent} that the registry notes; intent is a step that was begun: \
      provision, bind, adopt or erase. Null when the registry cannot be read.
      contents: what lies in it, or null:
      isClientRegistered: the hub knows the client.
      isCopy: the file was copied or restored; when an app opens it, it becomes a new client.
      isErasedAtHub: the hub said that the account is erased there.
      highWater: {epoch, sequence}, the hub's newest sequence that was seen.
      position: of the last batch that the app accepted.
      hasFinishedScan: history was read from the start once.
      scan: {kind, phase, epoch, until, place} of a scan from the start that is under way; kind is \
      first, expired, newEpoch or replay, phase is legs or tail.
      lineage: [{epoch, forkedAt}] of the epochs that were left.
      hubLimits: {payloadBytes, pullBytes, pullRecords, pushBytes, pushMutations, waitSeconds}.
      tombstones: how many of knownRecords are deleted.
      parked: how many mutations are parked, by reason: conflict, rejected, tooLarge, adopted, \
      discarding.
      acknowledged: acknowledged mutations that are kept in case the hub loses them.
      lostAtHub: records that the hub lost with an epoch.
      besideEdits: versions of the hub that wait beside a local edit.
      settled: mutation IDs that the app gave and has not struck off.
      adoptions: [{adoption, source, adoptedAt, records, mutations}], what it took over.
      adopter: {hub, account, accountShort, adoption} of a frozen or moved profile.
      tables: [{name, entries}], the app's own under 'app.'.
      mapBytes: the size of the memory map.
      readerSlots: the most readers there ever were at once.
      readerSlotsMax: the most readers there can be.
      lastTransaction: the number of the last commit.
      """,
    parameters: [ProfilectlTool.profile],
    examples: [
      .init("profilectl --store DIR show 1f3a", "Shows the profile whose ID begins with 1f3a.")
    ]
  ) { invocation in
    let store = try StoreReader(invocation)
    let profile = try store.profile(named: invocation[ProfilectlTool.profile])
    let details = try store.details(of: profile)
    let reveals = invocation[ProfilectlTool.reveal]
    if invocation[ProfilectlTool.json] {
      try invocation.console.printJSON(DetailsJSON(details, revealsAccounts: reveals))
    } else {
      try invocation.console.print(DetailsText(details, revealsAccounts: reveals).lines)
    }
    if let failure = details.profile.failure ?? store.registryFailure { throw failure }
    return .ok
  }
}

import Foundation
import Testing
import ToolSupport

@Suite("The help of profilectl")
struct HelpTests {
  private func help(_ words: [String]) async -> String {
    await ToolRun.inProcess(URL(filePath: "/none"), words + ["--help"]).output
  }

  /// Without the exit codes, which are the same everywhere.
  private func ownHelp(_ command: String) async -> String? {
    let help = await help([command])
    return help.firstRange(of: "\n\nEXIT CODES:").map { String(help[..<$0.lowerBound]) }
  }

  @Test("says what it shows and hides, and documents every exit code")
  func root() async {
    #expect(
      await help([]) == #"""
        OVERVIEW: Looks at the profiles of a store, also while apps have it open.

        Nothing is ever made, changed or locked, but for a reader's slot in a file
        'lock.mdb' that is there. Payloads are shown only with 'outbox --payload'.
        Account IDs are shortened to their first characters and a short hash of hub and
        ID, as in 'ali…#1f3a9c07', unless --reveal is given: the same account has the
        same hash in every store. It tells accounts apart; it does not keep a secret.

        With --json every member is always there: null where nothing is known. Times are
        in UTC. Members may be added, but none changes its meaning.

        USAGE: profilectl --store <directory> [--json] [--reveal] <subcommand>

        OPTIONS:
          -s, --store <directory>
                                  The store's directory.
          -j, --json              Print JSON instead of text.
          --reveal                Show account IDs in full.
          --color <auto|never|always>
                                  When to use colors; 'auto' means on a terminal, if
                                  NO_COLOR is not set. (default: auto)
          --version               Show the version.
          -h, --help              Show this help.

        SUBCOMMANDS:
          list    Lists every profile of the store.
          show    Shows everything that is known of one profile.
          outbox  Lists what a profile has not sent yet, in the order of sending.

        EXAMPLES:
          profilectl --store DIR list
              Lists the profiles.
          profilectl --store DIR show 1f3a
              Shows the profile whose ID begins with 1f3a.
          profilectl --store DIR outbox 1f3a --json
              Prints as JSON what it has to send.

        EXIT CODES:
          0   What was asked for was printed, and all of it can be read.
          1   The store has no such profile, or it was erased.
          64  The command line was not understood, or the digits fit more than one
              profile.
          65  The store or a profile is damaged, has a newer format, or registry and
              profile contradict each other. What can be read was printed.
          66  There is no store at that place.
          70  A defect of this tool; please report it.
          74  Reading or writing failed.
          75  A limit of readers, memory or open files was reached; try again later.
          77  The files may not be read, or 'lock.mdb' not written.

        """#)
  }

  @Test("of list explains states and documents the JSON")
  func list() async {
    #expect(
      await ownHelp("list") == #"""
        OVERVIEW: Lists every profile of the store.

        A profile that cannot be read is listed as 'unreadable' with the reason below
        the table, and the exit code says so. A terminal that is too narrow gets shorter
        IDs and fewer columns.

        States: 'owned' by an account; 'unowned', the signed-out area; 'set aside',
        declined and kept; 'frozen', an adoption was begun; 'moved', adopted by an
        account; 'erased', its files go when no process holds them; 'unreadable';
        'missing', only the registry names it.

        JSON: {"profiles": [...], "registryProblem": ...}. A profile has these members:
        profile: its ID, 32 hexadecimal digits.
        state: owned, unowned, setAside, frozen, moved, erased, unreadable or missing.
        owner: {hub, account, accountShort}; account is null without --reveal.
        records: how many records it keeps.
        knownRecords: of how many the version at the hub is known, deleted ones
        included.
        pending: {count, parked, payloadBytes, oldest} of the outbox; parked ones count
        as pending.
        cursor: {epoch, sequence}; everything up to it was applied.
        usedBytes: bytes of its data file in use.
        createdAt: when it was made.
        lastPass: {endedAt, isComplete, message} of the last synchronization.
        client: its client ID at the hub.
        problem: why it cannot be read, or what the registry says otherwise.

        USAGE: profilectl --store <directory> [--json] [--reveal] list

        OPTIONS:
          -s, --store <directory>
                                  The store's directory.
          -j, --json              Print JSON instead of text.
          --reveal                Show account IDs in full.
          --color <auto|never|always>
                                  When to use colors; 'auto' means on a terminal, if
                                  NO_COLOR is not set. (default: auto)
          --version               Show the version.
          -h, --help              Show this help.

        EXAMPLES:
          profilectl --store DIR list --json
              Lists the profiles as JSON.
        """#)
  }

  @Test("of show documents the JSON")
  func show() async {
    #expect(
      await ownHelp("show") == #"""
        OVERVIEW: Shows everything that is known of one profile.

        No payload and no record ID is shown. Of an erased, missing or unreadable
        profile only what lies outside it is shown.

        JSON: the members of a profile in 'list --json', and these:
        directory: the area's directory.
        files: [{name, bytes}] below it; lock files are sparse, their length takes no
        room.
        registry: {state, intent} that the registry notes; intent is a step that was
        begun: provision, bind, adopt or erase. Null when the registry cannot be read.
        contents: what lies in it, or null:
        isClientRegistered: the hub knows the client.
        isCopy: the file was copied or restored; when an app opens it, it becomes a new
        client.
        isErasedAtHub: the hub said that the account is erased there.
        highWater: {epoch, sequence}, the hub's newest sequence that was seen.
        position: of the last batch that the app accepted.
        hasFinishedScan: history was read from the start once.
        scan: {kind, phase, epoch, until, place} of a scan from the start that is under
        way; kind is first, expired, newEpoch or replay, phase is legs or tail.
        lineage: [{epoch, forkedAt}] of the epochs that were left.
        hubLimits: {payloadBytes, pullBytes, pullRecords, pushBytes, pushMutations,
        waitSeconds}.
        tombstones: how many of knownRecords are deleted.
        parked: how many mutations are parked, by reason: conflict, rejected, tooLarge,
        adopted, discarding.
        acknowledged: acknowledged mutations that are kept in case the hub loses them.
        lostAtHub: records that the hub lost with an epoch.
        besideEdits: versions of the hub that wait beside a local edit.
        settled: mutation IDs that the app gave and has not struck off.
        adoptions: [{adoption, source, adoptedAt, records, mutations}], what it took
        over.
        adopter: {hub, account, accountShort, adoption} of a frozen or moved profile.
        tables: [{name, entries}], the app's own under 'app.'.
        mapBytes: the size of the memory map.
        readerSlots: the most readers there ever were at once.
        readerSlotsMax: the most readers there can be.
        lastTransaction: the number of the last commit.

        USAGE: profilectl --store <directory> [--json] [--reveal] show <profile>

        ARGUMENTS:
          <profile>  A profile's ID as 'list' shows it, or its first digits: 4 or more
                     that fit only one.

        OPTIONS:
          -s, --store <directory>
                                  The store's directory.
          -j, --json              Print JSON instead of text.
          --reveal                Show account IDs in full.
          --color <auto|never|always>
                                  When to use colors; 'auto' means on a terminal, if
                                  NO_COLOR is not set. (default: auto)
          --version               Show the version.
          -h, --help              Show this help.

        EXAMPLES:
          profilectl --store DIR show 1f3a
              Shows the profile whose ID begins with 1f3a.
        """#)
  }

  @Test("of outbox explains states and bases and documents the JSON")
  func outbox() async {
    #expect(
      await ownHelp("outbox") == #"""
        OVERVIEW: Lists what a profile has not sent yet, in the order of sending.

        States: 'pending', sent by the next pass; 'sent', without an answer yet; 'held',
        since the hub fails on it, and tried again by itself; 'waiting', behind a parked
        or held one of its record; 'parked' with its reason, not sent by itself. The
        base of a change is the record's version that it was made from, 'new' if there
        must be no record yet, or the earlier change that it follows; '-' means that the
        last writer wins.

        JSON: {profile, state, entries, isTruncated}; state is the profile's,
        isTruncated says that --limit left some out. An entry has these members:
        order: its place, growing.
        mutation: its ID.
        isCallerGiven: the app gave the ID and strikes it off.
        kind: put or delete.
        record: the record's ID.
        base: {kind, version, mutation}; kind is version, mustNotExist or mutation.
        account: {hub, account, accountShort} under which it was enqueued; null: signed
        out.
        enqueuedAt: when, by the device's clock.
        firstSent: the hub's sequence that was known when it was first sent.
        state: pending, sent, held, waiting or parked.
        held: {attempts, nextTry}: how often the hub has failed on it alone, and when it
        is tried again.
        parked: {reason, code, current}; reason is conflict, rejected, tooLarge, adopted
        or discarding, code is the hub's, current is the record at the hub: {version,
        isDeleted, isPayloadOmitted, payload}.
        payloadBytes: the length of a put's payload.
        payload: base64, with --payload; else null.

        USAGE: profilectl --store <directory> [--json] [--reveal] outbox [--payload]
            [--limit <count>] <profile>

        ARGUMENTS:
          <profile>  A profile's ID as 'list' shows it, or its first digits: 4 or more
                     that fit only one.

        OPTIONS:
          -s, --store <directory>
                                  The store's directory.
          -j, --json              Print JSON instead of text.
          --reveal                Show account IDs in full.
          --payload               Show payloads, too: as text where they are UTF-8, else
                                  as base64.
          -n, --limit <count>     Show no more than this many, the oldest first.
          --color <auto|never|always>
                                  When to use colors; 'auto' means on a terminal, if
                                  NO_COLOR is not set. (default: auto)
          --version               Show the version.
          -h, --help              Show this help.

        EXAMPLES:
          profilectl --store DIR outbox 1f3a --limit 20
              Lists the 20 oldest changes.
        """#)
  }

  @Test("of each command ends with the exit codes", arguments: ["list", "show", "outbox"])
  func exitCodes(command: String) async throws {
    let root = await help([])
    let codes = try #require(root.firstRange(of: "\n\nEXIT CODES:"))
    #expect(await help([command]).hasSuffix(root[codes.lowerBound...]))
  }
}

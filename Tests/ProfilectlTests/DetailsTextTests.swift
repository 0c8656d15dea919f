import ProfileStore
import Testing

@testable import profilectl

@Suite("The text of profilectl show")
struct DetailsTextTests {
  private func text(_ details: ProfileDetails) -> String {
    DetailsText(details, revealsAccounts: false).lines.joined(separator: "\n")
  }

  @Test("has everything that is known")
  func everything() throws {
    #expect(
      text(try Samples.details()) == #"""
        profile           1f3a9c07000000000000000000000000
        state             owned
        owner             alic…#0950a337 at hub 11111111-1111-4111-8111-111111111111
        adopted by        bob@…#1e1f883b at hub 11111111-1111-4111-8111-111111111111, adoption 66666666-6666-4666-8666-666666666666
        created           2026-01-02T02:50:45Z
        directory         /store/areas/1f/1f3a9c07000000000000000000000000
        registry          owned; 'bind' was begun

        client            33333333-3333-4333-8333-333333333333, registered
        copy              the file was copied: an app that opens it becomes a new client
        account           erased at the hub
        cursor            29001 in epoch 22222222-2222-4222-8222-222222222222
        high water        30000 in epoch 22222222-2222-4222-8222-222222222222
        left epochs       44444444-4444-4444-8444-444444444444, forked at 12
        scan              scan after the cursor expired: at 500 of 30000 in epoch 22222222-2222-4222-8222-222222222222
        last pass         2026-01-02T02:51:45Z, incomplete: the hub is not there
        hub's limits      payload 1.0 MiB; push 500 and 8.0 MiB; pull 500 and 8.0 MiB

        records           13,000
        known at the hub  12,990, 990 of them deleted
        beside edits      3
        lost at the hub   2
        batch position    58

        pending           1,012, 3.4 KiB of payloads
        parked            12: 11 conflict, 1 too large
        oldest pending    2026-01-02T02:50:45Z
        acknowledged      1,000 kept
        not struck off    4

        adoptions         55555555-5555-4555-8555-555555555555 from 1f3a9c08000000000000000000000000
                            at 2026-01-02T02:50:45Z, 5 records, 6 changes

        used              7.0 MiB
        map size          64.0 MiB
        reader slots      2 of 1,024 at most
        last transaction  12345
        files             data.mdb, 7.0 MiB
                          lock.mdb, 64.1 KiB

        tables            app.bookmarks, 7
                          outbox, 1,012
        """#)
  }

  @Test("of a fresh signed-out profile says what is not there yet")
  func fresh() {
    var details = ProfileDetails(profile: Samples.unowned(), directory: "/store/areas/1f")
    details.registry = .init(state: "setAside", intent: nil)
    details.contents = AreaContents()
    #expect(
      text(details) == #"""
        profile           1f3a9c08000000000000000000000000
        state             unowned
        owner             nobody
        created           2026-01-02T02:50:45Z
        directory         /store/areas/1f
        registry          set aside

        cursor            none: nothing was pulled yet
        high water        not known yet
        scan              never finished
        last pass         none yet
        hub's limits      not known yet

        records           1
        known at the hub  0, 0 of them deleted
        beside edits      0
        lost at the hub   0

        pending           1, 2 bytes of payloads
        parked            0
        oldest pending    2026-01-02T02:50:45Z
        acknowledged      0 kept
        not struck off    0

        used              56.0 KiB
        map size          0 bytes
        reader slots      0 of 0 at most
        last transaction  0
        """#)
  }

  @Test("of a profile that cannot be read says why, and what lies outside it")
  func unreadable() {
    var details = ProfileDetails(profile: Samples.unreadable(), directory: "/store/areas/1f")
    details.files = [.init(name: "data.mdb", byteCount: 4_096)]
    details.registry = .init(state: nil, intent: nil)
    #expect(
      text(details) == #"""
        profile           1f3a9c07ff0000000000000000000000
        state             unreadable
        problem           the file is cut\u{A}short
        directory         /store/areas/1f
        registry          does not name it

        files             data.mdb, 4.0 KiB
        """#)
  }
}

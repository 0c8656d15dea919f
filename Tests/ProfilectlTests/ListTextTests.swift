import Foundation
import ProfileStore
import Testing
import ToolSupport

@testable import profilectl

@Suite("The table of profilectl list")
struct ListTextTests {
  private func text(width: Int?, revealing: Bool = false) throws -> String {
    ListText(try Samples.survey(), revealsAccounts: revealing).lines(width: width)
      .joined(separator: "\n")
  }

  @Test("that goes into a file has whole IDs and all columns")
  func whole() throws {
    #expect(
      try text(width: nil) == #"""
        PROFILE                           STATE       OWNER           RECORDS  PENDING  PARKED      USED  LAST PASS
        1f3a9c07000000000000000000000000  owned       alic…#0950a337   13,000    1,012      12   7.0 MiB  2026-01-02T02:51:45Z incomplete
        1f3a9c08000000000000000000000000  set aside   -                     1        1       0  56.0 KiB  -
        1f3a9c07ff0000000000000000000000  unreadable  -                     -        -       -         -  -
        ee000000000000000000000000000000  erased      -                     -        -       -  56.0 KiB  -

        1f3a9c07f: the file is cut\u{A}short
        """#)
  }

  @Test("has as many digits of an ID as tell the profiles apart where whole ones do not fit")
  func shorterIDs() throws {
    #expect(
      try text(width: 120) == #"""
        PROFILE    STATE       OWNER           RECORDS  PENDING  PARKED      USED  LAST PASS
        1f3a9c070  owned       alic…#0950a337   13,000    1,012      12   7.0 MiB  2026-01-02T02:51:45Z incomplete
        1f3a9c080  set aside   -                     1        1       0  56.0 KiB  -
        1f3a9c07f  unreadable  -                     -        -       -         -  -
        ee0000000  erased      -                     -        -       -  56.0 KiB  -

        1f3a9c07f: the file is cut\u{A}short
        """#)
  }

  @Test("leaves the last pass out where it does not fit")
  func fewerColumns() throws {
    #expect(
      try text(width: 80) == #"""
        PROFILE    STATE       OWNER           RECORDS  PENDING  PARKED      USED
        1f3a9c070  owned       alic…#0950a337   13,000    1,012      12   7.0 MiB
        1f3a9c080  set aside   -                     1        1       0  56.0 KiB
        1f3a9c07f  unreadable  -                     -        -       -         -
        ee0000000  erased      -                     -        -       -  56.0 KiB

        1f3a9c07f: the file is cut\u{A}short
        """#)
  }

  @Test("cuts the owner only, also where that is shown whole")
  func cutOwner() throws {
    #expect(
      try text(width: 80, revealing: true) == #"""
        PROFILE    STATE       OWNER                  RECORDS  PENDING  PARKED      USED
        1f3a9c070  owned       alice@example.org #0…   13,000    1,012      12   7.0 MiB
        1f3a9c080  set aside   -                            1        1       0  56.0 KiB
        1f3a9c07f  unreadable  -                            -        -       -         -
        ee0000000  erased      -                            -        -       -  56.0 KiB

        1f3a9c07f: the file is cut\u{A}short
        """#)
  }

  @Test("never takes more columns than the terminal has, while it can shrink", arguments: 67...160)
  func fits(width: Int) throws {
    let table = ListText(try Samples.survey(), revealsAccounts: true).lines(width: width)
      .prefix { !$0.isEmpty }
    #expect(table.allSatisfy { TerminalText.width(of: $0) <= width })
  }

  @Test("has the registry's problem below it")
  func registry() throws {
    let survey = StoreSurvey(
      profiles: [Samples.unowned()],
      registryFailure: StoreError(.damaged, "the registry cannot be read"))
    #expect(
      ListText(survey, revealsAccounts: false).lines(width: 80).suffix(2) == [
        "", "registry: the registry cannot be read",
      ])
  }
}

import Foundation
import HubProtocol
import ProfileStore
import Testing
import ToolSupport

@testable import profilectl

@Suite("The JSON of profilectl")
struct JSONTests {
  @Test("of list has every member of every profile, null where nothing is known")
  func list() throws {
    var survey = try Samples.survey()
    survey.registryFailure = Samples.unreadable().failure
    #expect(
      try JSONText.encoded(ListJSON(survey, revealsAccounts: true)) == #"""
        {
          "profiles" : [
            {
              "client" : "33333333-3333-4333-8333-333333333333",
              "createdAt" : "2026-01-02T02:50:45Z",
              "cursor" : {
                "epoch" : "22222222-2222-4222-8222-222222222222",
                "sequence" : 29001
              },
              "knownRecords" : 12990,
              "lastPass" : {
                "endedAt" : "2026-01-02T02:51:45Z",
                "isComplete" : false,
                "message" : "the hub is not there"
              },
              "owner" : {
                "account" : "alice@example.org",
                "accountShort" : "alic…#0950a337",
                "hub" : "11111111-1111-4111-8111-111111111111"
              },
              "pending" : {
                "count" : 1012,
                "oldest" : "2026-01-02T02:50:45Z",
                "parked" : 12,
                "payloadBytes" : 3482
              },
              "problem" : null,
              "profile" : "1f3a9c07000000000000000000000000",
              "records" : 13000,
              "state" : "owned",
              "usedBytes" : 7340032
            },
            {
              "client" : null,
              "createdAt" : "2026-01-02T02:50:45Z",
              "cursor" : null,
              "knownRecords" : 0,
              "lastPass" : null,
              "owner" : null,
              "pending" : {
                "count" : 1,
                "oldest" : "2026-01-02T02:50:45Z",
                "parked" : 0,
                "payloadBytes" : 2
              },
              "problem" : null,
              "profile" : "1f3a9c08000000000000000000000000",
              "records" : 1,
              "state" : "setAside",
              "usedBytes" : 57344
            },
            {
              "client" : null,
              "createdAt" : null,
              "cursor" : null,
              "knownRecords" : null,
              "lastPass" : null,
              "owner" : null,
              "pending" : null,
              "problem" : "the file is cut\nshort",
              "profile" : "1f3a9c07ff0000000000000000000000",
              "records" : null,
              "state" : "unreadable",
              "usedBytes" : null
            },
            {
              "client" : null,
              "createdAt" : "2026-01-02T02:50:45Z",
              "cursor" : null,
              "knownRecords" : null,
              "lastPass" : null,
              "owner" : null,
              "pending" : null,
              "problem" : null,
              "profile" : "ee000000000000000000000000000000",
              "records" : null,
              "state" : "erased",
              "usedBytes" : 57344
            }
          ],
          "registryProblem" : "the file is cut\nshort"
        }
        """#)
  }

  @Test("of show has the members of list and all of the area's")
  func show() throws {
    #expect(
      try JSONText.encoded(DetailsJSON(try Samples.details(), revealsAccounts: false)) == #"""
        {
          "client" : "33333333-3333-4333-8333-333333333333",
          "contents" : {
            "acknowledged" : 1000,
            "adopter" : {
              "account" : null,
              "accountShort" : "bob@…#1e1f883b",
              "adoption" : "66666666-6666-4666-8666-666666666666",
              "hub" : "11111111-1111-4111-8111-111111111111"
            },
            "adoptions" : [
              {
                "adoptedAt" : "2026-01-02T02:50:45Z",
                "adoption" : "55555555-5555-4555-8555-555555555555",
                "mutations" : 6,
                "records" : 5,
                "source" : "1f3a9c08000000000000000000000000"
              }
            ],
            "besideEdits" : 3,
            "hasFinishedScan" : false,
            "highWater" : {
              "epoch" : "22222222-2222-4222-8222-222222222222",
              "sequence" : 30000
            },
            "hubLimits" : {
              "payloadBytes" : 1048576,
              "pullBytes" : 8388608,
              "pullRecords" : 500,
              "pushBytes" : 8388608,
              "pushMutations" : 500,
              "waitSeconds" : 0
            },
            "isClientRegistered" : true,
            "isCopy" : true,
            "isErasedAtHub" : true,
            "lastTransaction" : 12345,
            "lineage" : [
              {
                "epoch" : "44444444-4444-4444-8444-444444444444",
                "forkedAt" : 12
              }
            ],
            "lostAtHub" : 2,
            "mapBytes" : 67108864,
            "parked" : {
              "adopted" : 0,
              "conflict" : 11,
              "discarding" : 0,
              "rejected" : 0,
              "tooLarge" : 1
            },
            "position" : 58,
            "readerSlots" : 2,
            "readerSlotsMax" : 1024,
            "scan" : {
              "epoch" : "22222222-2222-4222-8222-222222222222",
              "kind" : "expired",
              "phase" : "legs",
              "place" : 500,
              "until" : 30000
            },
            "settled" : 4,
            "tables" : [
              {
                "entries" : 7,
                "name" : "app.bookmarks"
              },
              {
                "entries" : 1012,
                "name" : "outbox"
              }
            ],
            "tombstones" : 990
          },
          "createdAt" : "2026-01-02T02:50:45Z",
          "cursor" : {
            "epoch" : "22222222-2222-4222-8222-222222222222",
            "sequence" : 29001
          },
          "directory" : "/store/areas/1f/1f3a9c07000000000000000000000000",
          "files" : [
            {
              "bytes" : 7340032,
              "name" : "data.mdb"
            },
            {
              "bytes" : 65664,
              "name" : "lock.mdb"
            }
          ],
          "knownRecords" : 12990,
          "lastPass" : {
            "endedAt" : "2026-01-02T02:51:45Z",
            "isComplete" : false,
            "message" : "the hub is not there"
          },
          "owner" : {
            "account" : null,
            "accountShort" : "alic…#0950a337",
            "hub" : "11111111-1111-4111-8111-111111111111"
          },
          "pending" : {
            "count" : 1012,
            "oldest" : "2026-01-02T02:50:45Z",
            "parked" : 12,
            "payloadBytes" : 3482
          },
          "problem" : null,
          "profile" : "1f3a9c07000000000000000000000000",
          "records" : 13000,
          "registry" : {
            "intent" : "bind",
            "state" : "owned"
          },
          "state" : "owned",
          "usedBytes" : 7340032
        }
        """#)
  }

  @Test("of show has null for what lies in a profile that cannot be read")
  func showUnreadable() throws {
    let details = ProfileDetails(profile: Samples.unreadable(), directory: "/store/areas/1f")
    let text = try JSONText.encoded(DetailsJSON(details, revealsAccounts: false))
    #expect(
      text == #"""
        {
          "client" : null,
          "contents" : null,
          "createdAt" : null,
          "cursor" : null,
          "directory" : "/store/areas/1f",
          "files" : [

          ],
          "knownRecords" : null,
          "lastPass" : null,
          "owner" : null,
          "pending" : null,
          "problem" : "the file is cut\nshort",
          "profile" : "1f3a9c07ff0000000000000000000000",
          "records" : null,
          "registry" : null,
          "state" : "unreadable",
          "usedBytes" : null
        }
        """#)
  }

  @Test("has no member that the help does not document", arguments: ["list", "show", "outbox"])
  func documented(command: String) async throws {
    let sample: any Encodable =
      switch command {
      case "list": ListJSON(try Samples.survey(), revealsAccounts: true)
      case "show": DetailsJSON(try Samples.details(), revealsAccounts: true)
      default: OutboxJSON(try await Samples.outbox())
      }
    let value = try JSONSerialization.jsonObject(with: Data(try JSONText.encoded(sample).utf8))
    let none = URL(filePath: "/none")
    var help = await ToolRun.inProcess(none, [command, "--help"]).output
    // What a profile has is documented once.
    if command == "show" { help += await ToolRun.inProcess(none, ["list", "--help"]).output }
    let words = Set(help.split { !$0.isLetter }.map(String.init))
    #expect(members(of: value).subtracting(words) == [])
  }

  /// The names of all members, at every depth.
  private func members(of value: Any) -> Set<String> {
    switch value {
    case let object as [String: Any]:
      object.reduce(into: []) { names, member in
        names.insert(member.key)
        names.formUnion(members(of: member.value))
      }
    case let array as [Any]: array.reduce(into: []) { $0.formUnion(members(of: $1)) }
    default: []
    }
  }
}

import Foundation
import HubProtocol
import Testing

@Suite("A record's payload on the wire")
struct RecordFormTests {
  private let samples: Samples

  init() throws { samples = try Samples() }

  @Test("may be left out of a verdict's record, never of a page or of an answer for one record")
  func omitted() throws {
    for format in WireFormat.allCases {
      var page = samples.page
      page.records = [samples.omitted]
      let error = try wireError(ChangesPage.self, page.encoded(as: format), format)
      #expect(error.code == .missing)
      #expect(error.path == "records[0].payload")

      var answer = samples.recordAnswer
      answer.record = samples.omitted
      #expect(
        try wireError(RecordAnswer.self, answer.encoded(as: format), format).path
          == "record.payload")

      var push = samples.pushAnswer
      push.results = [
        MutationResult(mutation: samples.mutation, status: .conflict, current: samples.omitted)
      ]
      let read = try PushAnswer(decoding: push.encoded(as: format), as: format)
      #expect(read.results[0].current?.isPayloadOmitted == true)
    }
  }

  @Test("is null exactly if the record is deleted")
  func nullIffDeleted() throws {
    for format in WireFormat.allCases {
      var page = samples.page
      page.records = [WireRecord(id: "a", version: 1, deleted: true, payload: Data())]
      #expect(
        try wireError(ChangesPage.self, page.encoded(as: format), format).code == .unexpected)
      page.records = [WireRecord(id: "a", version: 1, deleted: false, payload: nil)]
      #expect(try wireError(ChangesPage.self, page.encoded(as: format), format).code == .illTyped)
      // A null payload of a live record is wrong in a verdict too: left out means left out.
      var push = samples.pushAnswer
      push.results = [
        MutationResult(mutation: samples.mutation, status: .conflict, current: page.records[0])
      ]
      #expect(
        try wireError(PushAnswer.self, push.encoded(as: format), format).path
          == "results[0].current.payload")
    }
  }

  @Test("is written as null for a tombstone")
  func tombstoneText() {
    #expect(json(samples.page).contains(#""deleted":true,"payload":null,"client""#))
  }

  @Test("has no answer for one record without the member that says so")
  func silence() throws {
    var answer = samples.recordAnswer
    answer.record = nil
    let body = json(answer)
    #expect(body.hasSuffix(#","record":null}"#))
    let silent = body.replacingOccurrences(of: #","record":null"#, with: "")
    #expect(try wireError(RecordAnswer.self, json: silent).path == "record")
  }
}

@Suite("A verdict on the wire")
struct VerdictFormTests {
  private let samples: Samples

  init() throws { samples = try Samples() }

  @Test(
    "must say what it is about",
    arguments: [
      (MutationStatus.applied, "version"), (.duplicate, "version"), (.rejected, "code"),
      (.deferred, "code"),
    ])
  func required(_ status: MutationStatus, _ member: String) throws {
    for format in WireFormat.allCases {
      var answer = samples.pushAnswer
      answer.results = [MutationResult(mutation: samples.mutation, status: status)]
      let error = try wireError(PushAnswer.self, answer.encoded(as: format), format)
      #expect(error.code == .missing)
      #expect(error.path == "results[0].\(member)")
      #expect(error.index == nil)
    }
  }

  @Test("of another name is refused, a code of another name is kept")
  func unknownNames() throws {
    let body = json(samples.pushAnswer)
    let status = body.replacingOccurrences(of: #""deferred""#, with: #""postponed""#)
    #expect(try wireError(PushAnswer.self, json: status).path == "results[5].status")
    let read = try PushAnswer(decoding: Data(body.utf8), as: .json)
    #expect(read.results[5].code == "of a later version")
  }

  @Test("of a conflict says null where there is no record")
  func conflictWithoutRecord() {
    #expect(json(samples.pushAnswer).contains(#""status":"conflict","current":null}"#))
  }
}

import Foundation
import HubProtocol
import Testing

// A page that stays in its body is the same page.
@Suite("A page that stays in its body")
struct OutlineTests {
  private let samples: Samples

  init() throws { samples = try Samples() }

  /// What both ways of reading say: the page's content, or the error.
  private enum Outcome: Equatable {
    case read(ChangesPage)
    case refused(String)
  }

  /// The outline as the values that a page has; who made a change is not in it.
  private static func page(_ outline: ChangesOutline) throws -> ChangesPage {
    ChangesPage(
      hub: outline.hub, epoch: outline.epoch, account: outline.account, after: outline.after,
      next: outline.next, more: outline.more, highWater: outline.highWater,
      records: try outline.records.map {
        WireRecord(
          id: try RecordID(bytes: outline.body[$0.id]), version: $0.version, deleted: $0.isDeleted,
          payload: $0.isDeleted ? nil : Data(outline.body[$0.payload]))
      })
  }

  private static func outline(_ body: Data, _ format: WireFormat) throws -> Outcome {
    do {
      return .read(try page(try ChangesOutline(decoding: body, as: format)))
    } catch let error as WireError {
      return .refused(error.description)
    }
  }

  private static func whole(_ body: Data, _ format: WireFormat) -> Outcome {
    do {
      var page = try ChangesPage(decoding: body, as: format)
      for index in page.records.indices {
        page.records[index].client = nil
        page.records[index].mutation = nil
      }
      return .read(page)
    } catch {
      return .refused(error.description)
    }
  }

  @Test("has the same records", arguments: WireFormat.allCases)
  func same(_ format: WireFormat) throws {
    let body = samples.page.encoded(as: format)
    let outline = try Self.outline(body, format)
    #expect(outline == Self.whole(body, format))
    guard case .read(let page) = outline else { return #expect(Bool(false), "it was refused") }
    #expect(page.records.count == samples.page.records.count && !page.records.isEmpty)
  }

  @Test("and is refused for the same reason, whatever byte is damaged or missing")
  func damaged() throws {
    var generator = SeededGenerator(seed: 41)
    let original = samples.page.encoded(as: .cbor)
    for count in 0..<original.count {
      let body = original.prefix(count)
      #expect(try Self.outline(body, .cbor) == Self.whole(body, .cbor))
    }
    var read = 0
    for _ in 0..<6_000 {
      var body = original
      for _ in 0..<Int.random(in: 1...2, using: &generator) {
        let position = Int.random(in: 0..<body.count, using: &generator)
        body[position] = UInt8.random(in: 0...255, using: &generator)
      }
      let outline = try Self.outline(body, .cbor)
      #expect(outline == Self.whole(body, .cbor))
      if case .read = outline { read += 1 }
    }
    #expect(read > 100 && read < 5_900)
  }
}

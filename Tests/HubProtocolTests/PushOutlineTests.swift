import Foundation
import HubProtocol
import Testing

// A push that stays in its body is the same push; what is encoded where it lies is the same, too.
@Suite("A push that stays in its body")
struct PushOutlineTests {
  private let samples: Samples

  init() throws { samples = try Samples() }

  /// What both ways of reading say: the content, or the error.
  private enum Outcome: Equatable {
    case read(PushRequest)
    case refused(String)
  }

  private static func request(_ outline: PushOutline) -> PushRequest {
    PushRequest(
      client: outline.client, epoch: outline.epoch, cursor: outline.cursor,
      mutations: outline.mutations.map { mutation in
        WireMutation(
          mutation: mutation.mutation, order: mutation.order, kind: mutation.kind,
          id: outline.record(of: mutation), base: mutation.base, firstSent: mutation.firstSent,
          payload: mutation.payload.map { Data(outline.body[$0]) })
      })
  }

  private static func outline(_ body: Data, _ format: WireFormat) -> Outcome {
    do {
      return .read(request(try PushOutline(decoding: body, as: format)))
    } catch {
      return .refused(error.description)
    }
  }

  private static func whole(_ body: Data, _ format: WireFormat) -> Outcome {
    do {
      return .read(try PushRequest(decoding: body, as: format))
    } catch {
      return .refused(error.description)
    }
  }

  /// Puts and deletes of all lengths, with and without a base.
  private static func request(count: Int) -> PushRequest {
    var generator = SeededGenerator(seed: UInt64(count))
    let numbers: [UInt64] = [0, 1, 23, 24, 255, 256, 1 << 16, 1 << 32, WireLimits.sequenceMax]
    return PushRequest(
      client: UUID(), epoch: UUID(), cursor: 1 << 40,
      mutations: (0..<count).map { number in
        let isPut = number % 5 != 4
        let length = [0, 1, 23, 24, 255, 256, 70_000][number % 7]
        let payload = (0..<length).map { _ in UInt8.random(in: 0...255, using: &generator) }
        let bases: [WireBase?] = [
          nil, .version(0), .version(numbers[number % 9]), .mutation(UUID()),
        ]
        return WireMutation(
          mutation: UUID(), order: numbers[(number + 3) % 9], kind: isPut ? .put : .delete,
          id: RecordID(String(repeating: "é", count: number % 200 + 1)),
          base: bases[number % 4], firstSent: numbers[(number + 5) % 9],
          payload: isPut ? Data(payload) : nil)
      })
  }

  @Test("has the same mutations", arguments: WireFormat.allCases, [0, 1, 23, 24, 500])
  func same(_ format: WireFormat, count: Int) throws {
    for request in [samples.push, Self.request(count: count)] {
      let body = request.encoded(as: format)
      #expect(Self.outline(body, format) == .read(request))
      // What this module writes in CBOR stays where it is.
      let outline = try PushOutline(decoding: body, as: format)
      #expect((outline.body == Array(body)) == (format == .cbor))
    }
  }

  @Test("has the same mutations in another order of members, or with members that nobody knows")
  func otherForm() throws {
    let mutation = WireMutation(
      mutation: UUID(), order: 7, kind: .put, id: "r", base: .version(3), firstSent: 5,
      payload: Data("p".utf8))
    let request = PushRequest(client: UUID(), epoch: UUID(), cursor: 9, mutations: [mutation])
    let original = Array(request.encoded(as: .cbor))
    // The member `id` and its text change places with `kind`: the same length, the same content.
    let kindFirst = Array("dkindcput".utf8) + Array("bidar".utf8)
    let start = try #require(original.firstRange(of: kindFirst))
    var swapped = original
    swapped.replaceSubrange(start, with: Array("bidar".utf8) + Array("dkindcput".utf8))
    // One member more at the end of the object: "x": null.
    var extended = original + Array("ax".utf8) + [0xf6]
    let head = try #require(original.firstRange(of: [0xa7] + Array("hmutation".utf8)))
    extended[head.lowerBound] = 0xa8
    for body in [swapped, extended] {
      #expect(Self.outline(Data(body), .cbor) == .read(request))
      #expect(try PushOutline(decoding: Data(body), as: .cbor).body != body)
    }
  }

  @Test("is refused for the same reason, whatever byte is damaged or missing")
  func damaged() throws {
    var generator = SeededGenerator(seed: 43)
    for request in [samples.push, Self.request(count: 5)] {
      let original = request.encoded(as: .cbor)
      for count in 0..<min(original.count, 2_000) {
        let body = original.prefix(count)
        #expect(Self.outline(body, .cbor) == Self.whole(body, .cbor))
      }
      var read = 0
      for _ in 0..<6_000 {
        var body = original
        for _ in 0..<Int.random(in: 1...2, using: &generator) {
          let position = Int.random(in: 0..<min(body.count, 2_000), using: &generator)
          body[position] = UInt8.random(in: 0...255, using: &generator)
        }
        let outline = Self.outline(body, .cbor)
        #expect(outline == Self.whole(body, .cbor))
        if case .read = outline { read += 1 }
      }
      #expect(read > 100 && read < 5_900)
    }
  }

  @Test("is refused for the same reason, whatever known name stands where none belongs")
  func nameTooMany() throws {
    let names = [
      "fclientx$", "eepochx$", "fcursor", "imutations", "hmutationx$", "eorder", "dkind", "cput",
      "fdelete", "bid", "dbase", "dbasex$", "ifirstSent", "gpayload",
    ]
    let mutations = [WireBase.version(5), .mutation(UUID()), nil].map {
      WireMutation(
        mutation: UUID(), order: 7, kind: .put, id: "r", base: $0, firstSent: 5,
        payload: Data("p".utf8))
    }
    let request = PushRequest(client: UUID(), epoch: UUID(), cursor: 9, mutations: mutations)
    let original = Array(request.encoded(as: .cbor))
    for position in 0...original.count {
      for name in names {
        var body = original
        body.insert(contentsOf: Array(name.utf8), at: position)
        #expect(Self.outline(Data(body), .cbor) == Self.whole(Data(body), .cbor))
      }
    }
  }

  @Test("is what is made of mutations where they lie", arguments: [0, 1, 23, 24, 500])
  func encodedMutations(count: Int) throws {
    var request = Self.request(count: count)
    let whole = request.encoded(as: .cbor)
    var encoded = EncodedMutations(byteCountHint: 10)
    for mutation in request.mutations {
      func add(_ payload: RawSpan?) {
        encoded.append(
          mutation: mutation.mutation, order: mutation.order, id: mutation.id.bytes.span.bytes,
          base: mutation.base, firstSent: mutation.firstSent, payload: payload)
      }
      if let payload = mutation.payload { add(payload.span.bytes) } else { add(nil) }
    }
    #expect(encoded.count == count)
    request.mutations = []
    #expect(request.encoded(with: encoded) == whole)
  }

  private static func answer(_ results: [MutationResult]) throws -> PushAnswer {
    PushAnswer(
      hub: UUID(), epoch: UUID(), account: try AccountID("ä"), highWater: WireLimits.sequenceMax,
      results: results)
  }

  private static func results(count: Int, all: Bool) -> [MutationResult] {
    (0..<count).map { number in
      let version = [1, 24, 256, 1 << 16, 1 << 32, WireLimits.sequenceMax][number % 6]
      if !all, number % 3 == 2 {
        return MutationResult(
          mutation: UUID(), status: .rejected, code: "bad_base", detail: "because",
          current: WireRecord(
            id: "r", version: version, deleted: false, payload: Data([1, 2]), client: nil,
            mutation: nil))
      }
      return MutationResult(
        mutation: UUID(), status: number % 2 == 0 ? .applied : .duplicate, version: version)
    }
  }

  @Test("has an answer that is made of its results one by one", arguments: [0, 1, 23, 24, 500])
  func encodedResults(count: Int) throws {
    for all in [true, false] {
      var answer = try Self.answer(Self.results(count: count, all: all))
      let whole = answer.encoded(as: .cbor)
      var encoded = EncodedResults(countHint: count)
      for result in answer.results {
        if let version = result.version {
          encoded.append(
            mutation: result.mutation, isDuplicate: result.status == .duplicate, version: version)
        } else {
          encoded.append(result)
        }
      }
      #expect(encoded.count == count)
      let results = answer.results
      answer.results = []
      #expect(answer.encoded(with: encoded) == whole)
      answer.results = results
      #expect(try PushAnswer(decoding: whole, as: .cbor) == answer)
      // Only one in which all was applied is read without looking for names.
      let own = PushAnswer(ownForm: Array(whole))
      #expect(own == (all || count < 3 ? answer : nil))
    }
  }

  @Test("has an answer that is taken for nothing else, whatever byte is damaged or missing")
  func damagedAnswer() throws {
    var generator = SeededGenerator(seed: 47)
    let answer = try Self.answer(Self.results(count: 4, all: true))
    let original = Array(answer.encoded(as: .cbor))
    for count in 0..<original.count {
      #expect(PushAnswer(ownForm: Array(original.prefix(count))) == nil)
    }
    var read = 0
    for _ in 0..<6_000 {
      var body = original
      for _ in 0..<Int.random(in: 1...2, using: &generator) {
        let position = Int.random(in: body.indices, using: &generator)
        body[position] = UInt8.random(in: 0...255, using: &generator)
      }
      guard let own = PushAnswer(ownForm: body) else { continue }
      read += 1
      // One value has one form: nothing else was taken for it.
      #expect(Array(own.encoded(as: .cbor)) == body)
    }
    #expect(read > 100 && read < 5_900)
  }
}

import Foundation
import HubProtocol
import Testing

/// A generator with a fixed seed (SplitMix64), so that a failure comes again.
struct SeededGenerator: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var value = state
    value = (value ^ (value >> 30)) &* 0xbf58_476d_1ce4_e5b9
    value = (value ^ (value >> 27)) &* 0x94d0_49bb_1331_11eb
    return value ^ (value >> 31)
  }
}

/// Every decoder of the protocol.
enum Decoder: CaseIterable {
  case session, registration, client, page, record, push, pushAnswer, problem

  func decode(_ body: Data, _ format: WireFormat) throws(WireError) {
    switch self {
    case .session: _ = try SessionAnswer(decoding: body, as: format)
    case .registration: _ = try ClientRegistration(decoding: body, as: format)
    case .client: _ = try ClientAnswer(decoding: body, as: format)
    case .page: _ = try ChangesPage(decoding: body, as: format)
    case .record: _ = try RecordAnswer(decoding: body, as: format)
    case .push: _ = try PushRequest(decoding: body, as: format)
    case .pushAnswer: _ = try PushAnswer(decoding: body, as: format)
    case .problem: _ = try HubProblem(decoding: body)
    }
  }
}

@Suite("A damaged body")
struct DamageTests {
  private let samples: Samples

  init() throws { samples = try Samples() }

  private func bodies(_ format: WireFormat) -> [Data] {
    [
      samples.session.encoded(as: format), samples.clientAnswer.encoded(as: format),
      samples.page.encoded(as: format), samples.recordAnswer.encoded(as: format),
      samples.push.encoded(as: format), samples.pushAnswer.encoded(as: format),
      samples.problem.encoded(),
    ]
  }

  @Test("that ends at any byte is refused", arguments: WireFormat.allCases)
  func truncated(_ format: WireFormat) throws {
    let page = samples.page.encoded(as: format)
    for count in 0..<page.count {
      #expect(throws: WireError.self) { try ChangesPage(decoding: page.prefix(count), as: format) }
    }
    let push = samples.push.encoded(as: format)
    for count in 0..<push.count {
      #expect(throws: WireError.self) { try PushRequest(decoding: push.prefix(count), as: format) }
    }
    let answer = samples.pushAnswer.encoded(as: format)
    for count in 0..<answer.count {
      #expect(throws: WireError.self) { try PushAnswer(decoding: answer.prefix(count), as: format) }
    }
  }

  @Test("of random bytes gives a value or an error, never a trap", arguments: WireFormat.allCases)
  func randomBytes(_ format: WireFormat) {
    var generator = SeededGenerator(seed: 20_240_601)
    for round in 0..<4_000 {
      let count = Int.random(in: 0...96, using: &generator)
      let body = Data((0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) })
      for decoder in Decoder.allCases {
        // Random bytes are no message of ours: each has required members with long names.
        #expect(throws: WireError.self, "round \(round)") { try decoder.decode(body, format) }
      }
    }
  }

  @Test("with a few bytes changed gives a value or an error, never a trap")
  func flippedBytes() {
    var generator = SeededGenerator(seed: 7)
    var refused = 0
    var read = 0
    for format in WireFormat.allCases {
      for original in bodies(format) {
        for _ in 0..<1_500 {
          var body = original
          for _ in 0..<Int.random(in: 1...3, using: &generator) {
            let position = Int.random(in: 0..<body.count, using: &generator)
            body[position] = UInt8.random(in: 0...255, using: &generator)
          }
          for decoder in Decoder.allCases {
            do throws(WireError) {
              try decoder.decode(body, format)
              read += 1
            } catch {
              refused += 1
            }
          }
        }
      }
    }
    // Both happen: a byte of a payload changes the value, one of a name the form.
    #expect(refused > 1_000)
    #expect(read > 100)
  }
}

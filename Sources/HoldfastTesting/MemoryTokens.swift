import HubProtocol
import HubRules
import Synchronization

/// The tokens of a hub in memory: a number that it has given, and nothing that could be forged.
final class MemoryTokens: TokenChecker {
  private struct State {
    var last: UInt64 = 0
    var known: [[UInt8]: VerifiedToken] = [:]
  }

  private let state = Mutex(State())

  func issue(for account: AccountID, until end: Int64) -> String {
    state.withLock { state in
      state.last += 1
      // Two tokens of one account differ, and none begins like another.
      let text = "memory-token-\(state.last)."
      state.known[Array(text.utf8)] = VerifiedToken(account: account, expiresAt: end)
      return text
    }
  }

  func revoke(_ account: AccountID) {
    state.withLock { state in state.known = state.known.filter { $0.value.account != account } }
  }

  func verify(_ token: [UInt8], now: Double) throws(TokenRefusal) -> VerifiedToken {
    guard let known = state.withLock({ $0.known[token] }) else {
      throw .invalid("the hub has given no such token, or has taken it back")
    }
    guard now < Double(known.expiresAt) else { throw .expired }
    return known
  }
}

/// 128 bits made from each content: two products, each begun at a number of its own.
///
/// Nobody who could look for two contents of one digest uses a hub in memory.
struct MemoryDigests: ContentDigester {
  func digests(of push: PushOutline) -> [ContentDigest] {
    push.mutations.map { mutation in
      var mixer = Mixer()
      mixer.take(mutation.kind == .put ? 1 : 2)
      mixer.take(push.bytes(mutation.id))
      if let payload = push.payload(of: mutation) { mixer.take(payload) }
      return ContentDigest(high: mixer.high, low: mixer.low)
    }
  }

  private struct Mixer {
    var high: UInt64 = 0x243f_6a88_85a3_08d3
    var low: UInt64 = 0x1319_8a2e_0370_7344

    mutating func take(_ word: UInt64) {
      high = Self.mixed(high ^ word, 0x9e37_79b9_7f4a_7c15)
      low = Self.mixed(low ^ word, 0xd6e8_feb8_6659_fd93)
    }

    /// With the count first, so that the end of one part and the start of the next stay apart.
    mutating func take(_ bytes: RawSpan) {
      take(UInt64(bytes.byteCount))
      bytes.withUnsafeBytes { bytes in
        for start in stride(from: 0, to: bytes.count, by: 8) {
          let rest = bytes[start..<min(start + 8, bytes.count)]
          take(rest.reduce(0) { $0 << 8 | UInt64($1) })
        }
      }
    }

    private static func mixed(_ left: UInt64, _ right: UInt64) -> UInt64 {
      let product = left.multipliedFullWidth(by: right)
      return product.high ^ product.low
    }
  }
}

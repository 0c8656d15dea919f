import CJOSE
import Foundation
package import HubProtocol

/// The first half of the SHA-256 of a mutation's content: kind, ID and payload, and nothing else.
///
/// It is what the hub remembers of an applied mutation, to tell a repetition from a second mutation
/// under the same UUID. (protocol.md: one ID with another content is `mutation_reused`.)
package struct ContentDigest: Hashable, Sendable {
  /// Its length, in bytes.
  package static let byteCount = 16
  package let bytes: [UInt8]

  package init(bytes: [UInt8]) {
    precondition(bytes.count == ContentDigest.byteCount, "a content digest has 16 bytes")
    self.bytes = bytes
  }

  package init(of mutation: WireMutation) {
    var hasher = SHA256Hasher()
    hasher.update([mutation.kind == .put ? 1 : 2])
    // The length keeps the end of the ID and the start of the payload apart.
    let count = UInt16(truncatingIfNeeded: mutation.id.bytes.count)
    hasher.update([UInt8(count >> 8), UInt8(count & 0xFF)])
    hasher.update(mutation.id.bytes)
    if let payload = mutation.payload { hasher.update(payload) }
    bytes = Array(hasher.finish().prefix(ContentDigest.byteCount))
  }
}

/// SHA-256 over parts. Corresponds to OpenSSL's `EVP_DigestUpdate` with `EVP_sha256`.
struct SHA256Hasher: ~Copyable {
  private let context: OpaquePointer

  init() {
    guard let context = EVP_MD_CTX_new(), EVP_DigestInit_ex(context, EVP_sha256(), nil) == 1 else {
      preconditionFailure("OpenSSL has no memory or no SHA-256")
    }
    self.context = context
  }

  deinit { EVP_MD_CTX_free(context) }

  mutating func update(_ bytes: some ContiguousBytes) {
    // SAFETY: OpenSSL reads `count` bytes within the call.
    let result = bytes.withUnsafeBytes { EVP_DigestUpdate(context, $0.baseAddress, $0.count) }
    precondition(result == 1, "OpenSSL could not take bytes into a digest")
  }

  mutating func finish() -> [UInt8] {
    var count: UInt32 = 0
    let digest = [UInt8](unsafeUninitializedCapacity: 64) { buffer, initialized in
      let result = EVP_DigestFinal_ex(context, buffer.baseAddress, &count)
      precondition(result == 1 && count == 32, "OpenSSL could not finish a digest")
      initialized = Int(count)
    }
    return digest
  }

  /// Bytes as hexadecimal digits in lower case.
  static func hexadecimal(_ bytes: some Collection<UInt8>) -> String {
    let digits = Array("0123456789abcdef".utf8)
    return String(
      decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
  }

  /// The digest of some bytes.
  static func digest(of bytes: some ContiguousBytes) -> [UInt8] {
    var hasher = SHA256Hasher()
    hasher.update(bytes)
    return hasher.finish()
  }
}

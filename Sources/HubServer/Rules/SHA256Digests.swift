import CJOSE
package import HubProtocol
package import HubRules

/// The first halves of the SHA-256 of each content.
package struct SHA256Digests: ContentDigester {
  package init() {}

  package func digests(of push: PushOutline) -> [ContentDigest] {
    var hasher = SHA256Hasher()
    return push.mutations.map { mutation in
      ContentDigest(
        of: mutation.kind, id: push.bytes(mutation.id), payload: push.payload(of: mutation),
        by: &hasher)
    }
  }
}

extension ContentDigest {
  /// - Parameters:
  ///   - payload: nil for a delete.
  ///   - hasher: of nothing yet; of nothing again when the call returns.
  package init(
    of kind: MutationKind, id: RawSpan, payload: RawSpan?, by hasher: inout SHA256Hasher
  ) {
    // The length keeps the end of the ID and the start of the payload apart.
    let count = UInt16(truncatingIfNeeded: id.byteCount)
    let head: InlineArray<3, UInt8> = [
      kind == .put ? 1 : 2, UInt8(count >> 8), UInt8(truncatingIfNeeded: count),
    ]
    hasher.update(head.span.bytes)
    hasher.update(id)
    if let payload { hasher.update(payload) }
    self = hasher.finish { digest in
      // SAFETY: any bytes are an integer, and 32 are there.
      ContentDigest(
        high: UInt64(bigEndian: digest.unsafeLoadUnaligned(fromByteOffset: 0, as: UInt64.self)),
        low: UInt64(bigEndian: digest.unsafeLoadUnaligned(fromByteOffset: 8, as: UInt64.self)))
    }
  }
}

/// SHA-256 over parts. Corresponds to OpenSSL's `EVP_DigestUpdate` with `EVP_sha256`.
package struct SHA256Hasher: ~Copyable {
  private let context: OpaquePointer

  package init() {
    guard let context = EVP_MD_CTX_new(), EVP_DigestInit_ex(context, EVP_sha256(), nil) == 1 else {
      preconditionFailure("OpenSSL has no memory or no SHA-256")
    }
    self.context = context
  }

  deinit { EVP_MD_CTX_free(context) }

  mutating func update(_ bytes: RawSpan) {
    // SAFETY: OpenSSL reads `count` bytes within the call.
    let result = bytes.withUnsafeBytes { EVP_DigestUpdate(context, $0.baseAddress, $0.count) }
    precondition(result == 1, "OpenSSL could not take bytes into a digest")
  }

  /// Lends the digest, 32 bytes, and begins anew: making another one costs more than a small digest.
  mutating func finish<R>(_ body: (RawSpan) -> R) -> R {
    var digest = InlineArray<64, UInt8>(repeating: 0)
    var count: UInt32 = 0
    var span = digest.mutableSpan
    // SAFETY: 64 bytes have room for the longest digest that there is.
    let result = span.withUnsafeMutableBufferPointer {
      EVP_DigestFinal_ex(context, $0.baseAddress, &count)
    }
    precondition(result == 1 && count == 32, "OpenSSL could not finish a digest")
    precondition(
      EVP_DigestInit_ex(context, nil, nil) == 1, "OpenSSL could not begin another digest")
    return body(digest.span.bytes.extracting(first: 32))
  }

  /// Bytes as hexadecimal digits in lower case.
  static func hexadecimal(_ bytes: some Collection<UInt8>) -> String {
    let digits = Array("0123456789abcdef".utf8)
    return String(
      decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
  }

  /// The digest of some bytes.
  static func digest(of bytes: [UInt8]) -> [UInt8] {
    var hasher = SHA256Hasher()
    hasher.update(bytes.span.bytes)
    return hasher.finish { $0.withUnsafeBytes { Array($0) } }
  }
}

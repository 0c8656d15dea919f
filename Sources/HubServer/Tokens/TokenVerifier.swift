import CJOSE
import Foundation
import HubProtocol
package import HubRules

/// Decides which account a bearer token speaks for.
///
/// A token counts only if it has the one compact form, its algorithm is on the list of a key that
/// the configuration names, that key verifies it, and `iss`, `aud`, `sub`, `exp` and `nbf` are right
/// with no leeway. The list is looked at before the key is. (RFC 7515, 7519; protocol.md, *Tokens*.)
package struct TokenVerifier: TokenChecker {
  private let issuer: [UInt8]
  private let audience: [UInt8]
  private let keys: [SigningKey]
  /// Of this verifier's keys alone: other keys make another verifier.
  private let cache = TokenCache()

  package init(issuer: String, audience: String, keys: [SigningKey]) {
    self.issuer = Array(issuer.utf8)
    self.audience = Array(audience.utf8)
    self.keys = keys
  }

  /// The account of a token.
  /// - Parameter token: the compact serialization, as the request carried it.
  /// - Parameter now: seconds since 1970.
  package func verify(_ token: [UInt8], now: Double) throws(TokenRefusal) -> VerifiedToken {
    if let known = cache.claims(of: token) { return try known.token(now: now) }
    let claims = try verifiedClaims(token)
    // One that is refused for its time, too: the signature stays right, and the time may come.
    cache.add(claims, of: token)
    return try claims.token(now: now)
  }

  /// Everything but the time.
  private func verifiedClaims(_ token: [UInt8]) throws(TokenRefusal) -> TokenClaims {
    let parts = token.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    guard parts.count == 3 else { throw .invalid("the token does not have three parts") }
    guard let header = Base64URL.decode(parts[0]), let claims = Base64URL.decode(parts[1]),
      Base64URL.decode(parts[2]) != nil
    else { throw .invalid("the token is not in canonical base64url") }
    let algorithm = try checkedAlgorithm(header: header)
    try checkSignature(token, algorithm: algorithm, keyID: keyID(header: header))
    return try checkedClaims(claims)
  }

  private func checkedAlgorithm(header: [UInt8]) throws(TokenRefusal) -> TokenAlgorithm {
    guard let root = JSONTree(header)?.root, let name = root["alg"]?.string else {
      throw .invalid("the token's header cannot be read")
    }
    guard root["crit"] == nil else {
      throw .invalid("the token demands an extension that this hub does not know")
    }
    guard let algorithm = TokenAlgorithm(rawValue: String(decoding: name, as: UTF8.self)) else {
      throw .invalid("the token's algorithm is not accepted")
    }
    return algorithm
  }

  private func keyID(header: [UInt8]) -> [UInt8]? {
    JSONTree(header)?.root["kid"]?.string
  }

  /// Tries the keys whose list has the algorithm, and, where both sides name one, whose ID is that.
  private func checkSignature(
    _ token: [UInt8], algorithm: TokenAlgorithm, keyID: [UInt8]?
  ) throws(TokenRefusal) {
    let candidates = keys.filter { key in
      guard key.algorithms.contains(algorithm) else { return false }
      guard let keyID, let own = key.keyID else { return true }
      return Array(own.utf8) == keyID
    }
    guard !candidates.isEmpty else {
      throw .invalid("no key of this hub takes the token's algorithm and key ID")
    }
    let signature = token.withUnsafeBytes { buffer in
      // SAFETY: cjose reads `count` bytes and copies what it keeps.
      cjose_jws_import(
        buffer.baseAddress?.assumingMemoryBound(to: CChar.self), buffer.count, nil)
    }
    guard let signature else { throw .invalid("the token cannot be read") }
    defer { cjose_jws_release(signature) }
    // The algorithm that cjose is going to use must be the one that was checked above.
    guard let used = cjose_header_get(cjose_jws_get_protected(signature), "alg", nil),
      String(cString: used) == algorithm.rawValue
    else { throw .invalid("the token's algorithm is not accepted") }
    for key in candidates where cjose_jws_verify(signature, key.pointer, nil) { return }
    throw .invalid("the token's signature does not verify")
  }

  private func checkedClaims(_ bytes: [UInt8]) throws(TokenRefusal) -> TokenClaims {
    guard let claims = JSONTree(bytes)?.root, claims.isObject else {
      throw .invalid("the token's claims cannot be read")
    }
    guard claims["iss"]?.string == issuer else {
      throw .invalid("the token is of another issuer")
    }
    guard let named = claims["aud"],
      (named.array ?? [named]).contains(where: {
        $0.string == audience
      })
    else { throw .invalid("the token is for another audience") }
    guard let subject = claims["sub"]?.string else {
      throw .invalid("the token names no subject")
    }
    let account: AccountID
    do { account = try AccountID(bytes: subject) } catch {
      throw .invalid("the token's subject is no account ID")
    }
    var notBefore: Double?
    if let claim = claims["nbf"] {
      guard let number = claim.number else { throw .invalid("the token is not valid yet") }
      notBefore = number
    }
    // Below 2^53: what JSON carries exactly, and a session's `expiresAt` may be.
    guard let end = claims["exp"]?.number, abs(end) < 9_007_199_254_740_992 else {
      throw .invalid("the token does not say when it ends")
    }
    return TokenClaims(account: account, notBefore: notBefore, end: end)
  }
}

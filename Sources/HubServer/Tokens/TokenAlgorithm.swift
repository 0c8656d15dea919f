/// A way to sign a token. There is no `none`: an unsigned token is never accepted.
public enum TokenAlgorithm: String, Sendable, Hashable, CaseIterable, Codable {
  /// HMAC with SHA-256; the key is secret at the hub and at the issuer.
  case hs256 = "HS256"
  /// RSA PKCS #1 v1.5 with SHA-256, 2,048 bits or more.
  case rs256 = "RS256"
  /// ECDSA on P-256 with SHA-256.
  case es256 = "ES256"
}

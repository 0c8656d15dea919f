import CJOSE
package import Foundation
public import HubProtocol

/// Issues tokens for development and tests; in production the issuer is another system.
public struct TokenIssuer: Sendable {
  private let issuer: String
  private let audience: String
  private let key: SigningKey
  private let algorithm: TokenAlgorithm

  /// Takes a key with its secret part; the first algorithm of its list signs.
  /// - Throws: ``HubServerError`` `tokenFailed` when the key has no algorithm.
  public init(issuer: String, audience: String, key: SigningKey) throws(HubServerError) {
    guard let algorithm = key.algorithms.first else {
      throw HubServerError(.tokenFailed, "the key has no algorithm to sign with")
    }
    self.issuer = issuer
    self.audience = audience
    self.key = key
    self.algorithm = algorithm
  }

  /// Signs a token for an account.
  /// - Parameter issuedAt: seconds since 1970; the token begins then.
  /// - Parameter lifetimeSeconds: how long it is valid, from `issuedAt`.
  /// - Throws: ``HubServerError`` `tokenFailed`, when the key has no secret part.
  public func token(
    for account: AccountID, issuedAt: Int64, lifetimeSeconds: Int64
  ) throws(HubServerError) -> String {
    let claims = Claims(
      iss: issuer, aud: audience, sub: account.text, iat: issuedAt, nbf: issuedAt,
      exp: issuedAt + lifetimeSeconds)
    do {
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
      return try sign(claims: encoder.encode(claims))
    } catch let error as HubServerError {
      throw error
    } catch {
      throw HubServerError(.tokenFailed, "the claims cannot be written down", cause: error)
    }
  }

  /// Signs a token for the account of that ID; see ``token(for:issuedAt:lifetimeSeconds:)``.
  /// - Throws: ``HubServerError`` `accountInvalid` when the ID has 0 or more than 256 bytes, and
  ///   `tokenFailed`.
  public func token(
    forAccountID text: String, issuedAt: Int64, lifetimeSeconds: Int64
  ) throws(HubServerError) -> String {
    let account: AccountID
    do { account = try AccountID(text) } catch {
      throw HubServerError(.accountInvalid, "no token can be issued: \(error)")
    }
    return try token(for: account, issuedAt: issuedAt, lifetimeSeconds: lifetimeSeconds)
  }

  /// Signs claims of any content: tests make wrong tokens with it.
  package func sign(claims: Data) throws(HubServerError) -> String {
    guard let header = cjose_header_new(nil) else {
      throw HubServerError(.tokenFailed, "no token header could be made")
    }
    defer { cjose_header_release(header) }
    var isSet = cjose_header_set(header, "alg", algorithm.rawValue, nil)
    isSet = cjose_header_set(header, "typ", "JWT", nil) && isSet
    if let keyID = key.keyID { isSet = cjose_header_set(header, "kid", keyID, nil) && isSet }
    guard isSet else { throw HubServerError(.tokenFailed, "no token header could be made") }
    let signed = claims.withUnsafeBytes { buffer in
      // SAFETY: cjose reads `count` bytes and copies what it keeps.
      cjose_jws_sign(
        key.pointer, header, buffer.baseAddress?.assumingMemoryBound(to: UInt8.self),
        buffer.count, nil)
    }
    guard let signed else {
      throw HubServerError(
        .tokenFailed, "the key cannot sign; give the issuer the key with its secret part")
    }
    defer { cjose_jws_release(signed) }
    var text: UnsafePointer<CChar>?
    guard cjose_jws_export(signed, &text, nil), let text else {
      throw HubServerError(.tokenFailed, "the token cannot be written down")
    }
    return String(cString: text)
  }

  private struct Claims: Encodable {
    var iss: String
    var aud: String
    var sub: String
    var iat: Int64
    var nbf: Int64
    var exp: Int64
  }
}

import Foundation
import HubProtocol
import HubRules
import HubServer
import Testing

@Suite("A token at the hub")
struct TokenVerifierTests {
  private static let now = 1_000_000.0
  private let key: SigningKey
  private let verifier: TokenVerifier
  private let issuer: TokenIssuer

  init() throws {
    key = testKey
    verifier = TokenVerifier(issuer: "holdfast", audience: "holdfast", keys: [key])
    issuer = try TokenIssuer(issuer: "holdfast", audience: "holdfast", key: key)
  }

  private func signed(_ claims: String) throws -> [UInt8] {
    Array(try issuer.sign(claims: Data(claims.utf8)).utf8)
  }

  private func verdict(_ claims: String) throws -> Result<VerifiedToken, TokenRefusal> {
    let token = try signed(claims)
    return Result { () throws(TokenRefusal) in
      try verifier.verify(token, now: TokenVerifierTests.now)
    }
  }

  @Test("is accepted for its account, each algorithm", arguments: TokenAlgorithm.allCases)
  func accepted(algorithm: TokenAlgorithm) throws {
    let key = try SigningKey.generate(algorithm)
    let account = try AccountID("al/ice\u{0}é")
    let token = try TokenIssuer(issuer: "i", audience: "a", key: key)
      .token(for: account, issuedAt: 100, lifetimeSeconds: 60)
    let verifier = TokenVerifier(issuer: "i", audience: "a", keys: [key])
    let verified = try verifier.verify(Array(token.utf8), now: 159.9)
    #expect(verified.account == account)
    #expect(verified.expiresAt == 160)
  }

  @Test("may end at the last second that a session can say")
  func lastSecond() throws {
    let claims = #"{"iss":"holdfast","aud":"holdfast","sub":"a","exp":9007199254740991}"#
    #expect(try verdict(claims).get().expiresAt == 9_007_199_254_740_991)
  }

  @Test("that was verified before is judged by the time anew, and byte for byte")
  func again() throws {
    let token = try signed(
      #"{"iss":"holdfast","aud":"holdfast","sub":"a","nbf":1000010,"exp":1000020}"#)
    func verdict(_ token: [UInt8], _ now: Double) -> Result<VerifiedToken, TokenRefusal> {
      Result { () throws(TokenRefusal) in try verifier.verify(token, now: now) }
    }
    let early = TokenRefusal.invalid("the token is not valid yet")
    #expect(verdict(token, 1_000_009.9) == .failure(early))
    for _ in 0..<3 {
      #expect(try verdict(token, 1_000_010).get().expiresAt == 1_000_020)
      #expect(verdict(token, 1_000_020) == .failure(.expired))
      #expect(verdict(token, 1_000_009) == .failure(early))
    }
    // Nothing that differs in a byte has been verified; nor has it for other keys.
    for place in token.indices {
      var other = token
      other[place] ^= 1
      guard case .failure(.invalid) = verdict(other, 1_000_015) else {
        Issue.record("byte \(place) was changed, and the token is accepted")
        continue
      }
    }
    let others = TokenVerifier(
      issuer: "holdfast", audience: "holdfast", keys: [try SigningKey.generate(.hs256)])
    #expect(throws: TokenRefusal.self) { try others.verify(token, now: 1_000_015) }
  }

  @Test("that has ended is expired, at the second it names")
  func expired() throws {
    let claims = #"{"iss":"holdfast","aud":"holdfast","sub":"a","exp":1000000}"#
    #expect(try verdict(claims) == .failure(.expired))
    let later = #"{"iss":"holdfast","aud":"holdfast","sub":"a","exp":1000000.5}"#
    #expect(try verdict(later).get().expiresAt == 1_000_000)
  }

  @Test(
    "with a claim that is missing, ill-typed or another's is invalid, also when it has ended",
    arguments: [
      #"{"aud":"holdfast","sub":"a","exp":2000000}"#,
      #"{"iss":"other","aud":"holdfast","sub":"a","exp":2000000}"#,
      #"{"iss":"other","aud":"holdfast","sub":"a","exp":1}"#,
      #"{"iss":["holdfast"],"aud":"holdfast","sub":"a","exp":2000000}"#,
      #"{"iss":"holdfast","sub":"a","exp":2000000}"#,
      #"{"iss":"holdfast","aud":"other","sub":"a","exp":2000000}"#,
      #"{"iss":"holdfast","aud":["x","other"],"sub":"a","exp":2000000}"#,
      #"{"iss":"holdfast","aud":"holdfast","exp":2000000}"#,
      #"{"iss":"holdfast","aud":"holdfast","sub":"","exp":2000000}"#,
      #"{"iss":"holdfast","aud":"holdfast","sub":7,"exp":2000000}"#,
      #"{"iss":"holdfast","aud":"holdfast","sub":"a"}"#,
      #"{"iss":"holdfast","aud":"holdfast","sub":"a","exp":"2000000"}"#,
      #"{"iss":"holdfast","aud":"holdfast","sub":"a","exp":1e300}"#,
      #"{"iss":"holdfast","aud":"holdfast","sub":"a","exp":9007199254740992}"#,
      #"{"iss":"holdfast","aud":"holdfast","sub":"a","exp":2000000,"nbf":1000001}"#,
      #"{"iss":"holdfast","aud":"holdfast","sub":"a","exp":2000000,"nbf":"0"}"#,
      #"{"iss":"holdfast","aud":"holdfast","sub":"a","sub":"b","exp":2000000}"#,
      #"["iss","holdfast"]"#,
      "no JSON",
    ])
  func wrongClaims(claims: String) throws {
    guard case .failure(.invalid) = try verdict(claims) else {
      Issue.record("it was not refused as invalid")
      return
    }
  }

  @Test("may name several audiences, and begins when it says so")
  func audiences() throws {
    let claims =
      #"{"iss":"holdfast","aud":["x","holdfast"],"sub":"a","exp":2000000,"nbf":1000000}"#
    #expect(try verdict(claims).get().account == AccountID("a"))
  }

  @Test("of 256 bytes of account ID is accepted, one of 257 is not")
  func longSubject() throws {
    func claims(_ count: Int) -> String {
      let subject = String(repeating: "a", count: count)
      return #"{"iss":"holdfast","aud":"holdfast","sub":"\#(subject)","exp":2000000}"#
    }
    #expect(try verdict(claims(256)).get().account.bytes.count == 256)
    #expect(throws: TokenRefusal.self) { try verdict(claims(257)).get() }
  }

  private static let good = #"{"iss":"holdfast","aud":"holdfast","sub":"a","exp":2000000}"#

  @Test("signed by another key of the same kind is invalid, with and without its key ID")
  func foreignSignature() throws {
    let foreign = try SigningKey.generate(.hs256)
    let own = try SigningKey.read(jwk: try foreign.privateJWK(), source: "a test")
    for key in [foreign] + own {
      let token = try TokenIssuer(issuer: "holdfast", audience: "holdfast", key: key)
        .sign(claims: Data(TokenVerifierTests.good.utf8))
      #expect(throws: TokenRefusal.self) { try verifier.verify(Array(token.utf8), now: 0) }
    }
  }

  @Test("with one changed byte anywhere is invalid")
  func everyByte() throws {
    let token = try signed(TokenVerifierTests.good)
    for index in token.indices {
      var changed = token
      changed[index] = changed[index] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
      #expect(throws: TokenRefusal.self) { try verifier.verify(changed, now: 0) }
    }
  }

  @Test("that says alg none is invalid, with any signature")
  func algorithmNone() throws {
    let claims = Base64URL.encode(Array(TokenVerifierTests.good.utf8))
    for name in ["none", "None", "NONE", "", "HS512"] {
      let header = Base64URL.encode(Array(#"{"alg":"\#(name)"}"#.utf8))
      for signature in ["", "AAAA"] {
        let token = "\(header).\(claims).\(signature)"
        #expect(throws: TokenRefusal.self) { try verifier.verify(Array(token.utf8), now: 0) }
      }
    }
  }

  @Test("signed with the text of a public key as HMAC secret is invalid")
  func confusion() throws {
    let rsa = try SigningKey.generate(.rs256)
    let text = String(decoding: try rsa.privateJWK(), as: UTF8.self)
    let modulus = try #require(text.firstMatch(of: /"n":"([^"]+)"/)).1
    let secrets = [
      Array(text.utf8), Array(modulus.utf8), try #require(Base64URL.decode(modulus.utf8)),
    ]
    let verifier = TokenVerifier(issuer: "holdfast", audience: "holdfast", keys: [rsa])
    for secret in secrets {
      let jwk = #"{"kty":"oct","alg":"HS256","k":"\#(Base64URL.encode(secret))"}"#
      let forged = try SigningKey.read(jwk: Data(jwk.utf8), source: "a test")
      let key = try #require(forged.first)
      let token = try TokenIssuer(issuer: "holdfast", audience: "holdfast", key: key)
        .sign(claims: Data(TokenVerifierTests.good.utf8))
      #expect(throws: TokenRefusal.self) { try verifier.verify(Array(token.utf8), now: 0) }
    }
  }

  @Test("of an algorithm that is not on its key's list is invalid before the key is tried")
  func listFirst() throws {
    let both = try SigningKey.read(
      jwk: try testKey.privateJWK(), algorithms: [.hs256], source: "a test")
    #expect(both.map(\.algorithms) == [[.hs256]])
    let es = try SigningKey.generate(.es256)
    let verifier = TokenVerifier(issuer: "holdfast", audience: "holdfast", keys: [es])
    let token = try signed(TokenVerifierTests.good)
    #expect(
      throws: TokenRefusal.invalid("no key of this hub takes the token's algorithm and key ID")
    ) {
      try verifier.verify(token, now: 0)
    }
  }

  @Test("that is not in the one compact form is invalid")
  func form() throws {
    let token = String(decoding: try signed(TokenVerifierTests.good), as: UTF8.self)
    let parts = token.split(separator: ".").map(String.init)
    let others = [
      "", ".", "..", "...", token + ".", "." + token, parts[0] + "." + parts[1],
      token + "=", token + " ", " " + token, parts[0] + "=." + parts[1] + "." + parts[2],
      token + "." + parts[2],
    ]
    for other in others {
      #expect(throws: TokenRefusal.self) { try verifier.verify(Array(other.utf8), now: 0) }
    }
  }

  @Test("that demands an extension is invalid")
  func critical() throws {
    let header = Base64URL.encode(Array(#"{"alg":"HS256","crit":["x"],"x":1}"#.utf8))
    let claims = Base64URL.encode(Array(TokenVerifierTests.good.utf8))
    #expect(
      throws: TokenRefusal.invalid("the token demands an extension that this hub does not know")
    ) {
      try verifier.verify(Array("\(header).\(claims).AAAA".utf8), now: 0)
    }
  }
}

@Suite("A signing key")
struct SigningKeyTests {
  @Test("is the same after it was written and read", arguments: TokenAlgorithm.allCases)
  func roundTrip(algorithm: TokenAlgorithm) throws {
    let key = try SigningKey.generate(algorithm)
    let read = try #require(
      try SigningKey.read(jwk: try key.privateJWK(), source: "a test").first)
    #expect(read.keyID == key.keyID)
    #expect(read.algorithms == [algorithm])
    let token = try TokenIssuer(issuer: "i", audience: "a", key: read)
      .token(for: AccountID("x"), issuedAt: 0, lifetimeSeconds: 10)
    let verifier = TokenVerifier(issuer: "i", audience: "a", keys: [key])
    #expect(try verifier.verify(Array(token.utf8), now: 1).account == AccountID("x"))
  }

  @Test("may come in a set")
  func keySet() throws {
    let members = try [TokenAlgorithm.hs256, .es256].map { algorithm in
      String(decoding: try SigningKey.generate(algorithm).privateJWK(), as: UTF8.self)
    }
    let set = #"{"keys":[\#(members.joined(separator: ","))]}"#
    let keys = try SigningKey.read(jwk: Data(set.utf8), source: "a test")
    #expect(keys.map(\.algorithms) == [[.hs256], [.es256]])
  }

  @Test("that does not fit its algorithm, or is none, is refused with its source")
  func wrongKeys() throws {
    let es = String(decoding: try SigningKey.generate(.es256).privateJWK(), as: UTF8.self)
    let wrong: [(text: String, algorithms: [TokenAlgorithm]?)] = [
      (es, [.hs256]), (es, [.rs256]), (es, []), (es, [.es256, .rs256]),
      (#"{"kty":"oct","k":"c2hvcnQ","alg":"HS256"}"#, nil),
      (#"{"kty":"oct","k":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}"#, nil),
      (#"{"kty":"oct"}"#, [.hs256]), (#"{"keys":[]}"#, nil), ("[]", nil), ("no JSON", nil),
    ]
    for (text, algorithms) in wrong {
      let error = #expect(throws: HubServerError.self) {
        try SigningKey.read(jwk: Data(text.utf8), algorithms: algorithms, source: "k.jwk")
      }
      #expect(error?.code == .keyInvalid)
      #expect(error?.message.contains("k.jwk") ?? false)
    }
  }
}

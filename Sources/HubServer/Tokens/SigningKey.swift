import CJOSE
public import Foundation

/// A key that signs or verifies tokens, with the algorithms it may be used for.
///
/// The list is what rules out confusion: a token's own `alg` only chooses among the algorithms that
/// the configuration gave this key, and each of them was checked against the key's type.
///
/// - SAFETY: `@unchecked Sendable` since the key behind `pointer` is never changed after `init`;
///   cjose only reads it to sign and to verify, and OpenSSL counts its references atomically.
public final class SigningKey: @unchecked Sendable {
  /// The key's ID, as a token's header may name it.
  public let keyID: String?
  /// What the key may be used for.
  public let algorithms: [TokenAlgorithm]
  let pointer: OpaquePointer

  /// Takes over a key that cjose made or read.
  fileprivate init(
    taking pointer: OpaquePointer, keyID: String?, algorithms: [TokenAlgorithm], source: String
  ) throws(HubServerError) {
    self.pointer = pointer
    self.keyID = keyID
    self.algorithms = algorithms
    guard !algorithms.isEmpty else {
      throw HubServerError(
        .keyInvalid,
        "the key of \(source) says no algorithm; give it \"alg\", or \"algorithms\" in the configuration"
      )
    }
    for algorithm in algorithms {
      if let complaint = SigningKey.complaint(about: pointer, as: algorithm) {
        throw HubServerError(.keyInvalid, "the key of \(source) \(complaint)")
      }
    }
  }

  deinit { cjose_jwk_release(pointer) }

  /// Makes a fresh key: 256 random bits for HS256, 2,048-bit RSA for RS256, P-256 for ES256.
  /// - Throws: ``HubServerError`` `keyInvalid` when the system gives no random bytes.
  public static func generate(_ algorithm: TokenAlgorithm) throws(HubServerError) -> SigningKey {
    let made: OpaquePointer? =
      switch algorithm {
      case .hs256: cjose_jwk_create_oct_random(256, nil)
      case .rs256: cjose_jwk_create_RSA_random(2048, nil, 0, nil)
      case .es256: cjose_jwk_create_EC_random(CJOSE_JWK_EC_P_256, nil)
      }
    guard let made else {
      throw HubServerError(.keyInvalid, "no \(algorithm.rawValue) key could be made")
    }
    let keyID = UUID().uuidString.lowercased()
    guard cjose_jwk_set_kid(made, keyID, keyID.utf8.count, nil) else {
      cjose_jwk_release(made)
      throw HubServerError(.keyInvalid, "no \(algorithm.rawValue) key could be named")
    }
    return try SigningKey(
      taking: made, keyID: keyID, algorithms: [algorithm], source: "this process")
  }

  /// Reads a JWK, or a JWK set, of RFC 7517.
  /// - Parameter algorithms: what each key may be used for; nil takes each key's own `alg`.
  /// - Parameter source: how an error names the text, such as its file.
  /// - Throws: ``HubServerError`` `keyInvalid` for anything that is no key of this hub's kinds.
  public static func read(
    jwk: Data, algorithms: [TokenAlgorithm]? = nil, source: String
  ) throws(HubServerError) -> [SigningKey] {
    guard let tree = JSONTree(jwk), tree.root.isObject else {
      throw HubServerError(.keyInvalid, "\(source) holds no JWK; make one with `hubd key`")
    }
    let values = tree.root["keys"]?.array ?? [tree.root]
    guard !values.isEmpty else {
      throw HubServerError(.keyInvalid, "\(source) holds an empty key set")
    }
    var keys: [SigningKey] = []
    for value in values {
      guard let pointer = cjose_jwk_import_json(value.pointer, nil) else {
        throw HubServerError(
          .keyInvalid, "\(source) holds a key that cannot be read; use kty oct, RSA or EC")
      }
      let own = value["alg"]?.string.flatMap {
        TokenAlgorithm(rawValue: String(decoding: $0, as: UTF8.self))
      }
      let keyID = value["kid"]?.string.map { String(decoding: $0, as: UTF8.self) }
      keys.append(
        try SigningKey(
          taking: pointer, keyID: keyID, algorithms: algorithms ?? own.map { [$0] } ?? [],
          source: source))
    }
    return keys
  }

  /// Reads the JWK, or JWK set, of a file; see ``read(jwk:algorithms:source:)``.
  /// - Throws: ``HubServerError`` `keyInvalid`, naming the file.
  public static func read(
    file: URL, algorithms: [TokenAlgorithm]? = nil
  ) throws(HubServerError) -> [SigningKey] {
    let text: Data
    do { text = try Data(contentsOf: file) } catch {
      let isMissing = HubServerError.systemNumber(of: error) == ENOENT
      throw HubServerError(
        .keyInvalid,
        "the key file \(file.path) cannot be read; "
          + (isMissing ? "make one with `hubd key`" : "check its path and rights"),
        cause: error)
    }
    return try read(jwk: text, algorithms: algorithms, source: file.path)
  }

  /// The key as a JWK with its secret part: keep it from everybody but hub and issuer.
  /// - Throws: ``HubServerError`` `keyInvalid` when the key cannot be written down.
  public func privateJWK() throws(HubServerError) -> Data {
    guard let text = cjose_jwk_to_json(pointer, true, nil) else {
      throw HubServerError(.keyInvalid, "the key cannot be written down")
    }
    defer { free(text) }
    // cjose leaves `alg` out, and a key file should say what its key is for.
    let members = String(cString: text).dropFirst()
    let algorithm = algorithms.first?.rawValue ?? ""
    return Data("{\"alg\":\"\(algorithm)\",\(members)\n".utf8)
  }

  private static func complaint(
    about key: OpaquePointer, as algorithm: TokenAlgorithm
  ) -> String? {
    let type = cjose_jwk_get_kty(key, nil)
    let bitCount = cjose_jwk_get_keysize(key, nil)
    switch algorithm {
    case .hs256:
      guard type == CJOSE_JWK_KTY_OCT else { return "is not of type oct, which HS256 needs" }
      return bitCount < 256 ? "has \(bitCount) bits; HS256 needs 256 or more" : nil
    case .rs256:
      guard type == CJOSE_JWK_KTY_RSA else { return "is not of type RSA, which RS256 needs" }
      return bitCount < 2048 ? "has \(bitCount) bits; RS256 needs 2048 or more" : nil
    case .es256:
      guard type == CJOSE_JWK_KTY_EC, bitCount == 256 else {
        return "is not of type EC on P-256, which ES256 needs"
      }
      return nil
    }
  }
}

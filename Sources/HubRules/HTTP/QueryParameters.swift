package import Foundation
package import HubProtocol

/// The parameters of a query, percent-decoded and nothing else: a `+` is a plus.
package struct QueryParameters: Sendable {
  private var values: [String: [UInt8]] = [:]

  /// Reads the parameters that an endpoint knows; others are passed over once they are well-formed.
  /// - Throws: ``Refusal`` `bad_request` for a bad escape, bytes that are no UTF-8, or a known
  ///   parameter that is there twice.
  package init(_ query: ArraySlice<UInt8>?, known: Set<String>) throws(Refusal) {
    guard let query else { return }
    for pair in query.split(separator: UInt8(ascii: "&")) {
      let end = pair.firstIndex(of: UInt8(ascii: "=")) ?? pair.endIndex
      let name = try QueryParameters.decoded(pair[..<end])
      let value = try QueryParameters.decoded(pair[end...].dropFirst())
      let text = String(decoding: name, as: UTF8.self)
      guard known.contains(text) else { continue }
      guard values.updateValue(value, forKey: text) == nil else {
        throw Refusal(.badRequest, "the parameter \(text) is there twice")
      }
    }
  }

  private static func decoded(_ bytes: ArraySlice<UInt8>) throws(Refusal) -> [UInt8] {
    guard let decoded = PercentEncoding.decode(String(decoding: bytes, as: UTF8.self)) else {
      throw Refusal(.badRequest, "the query has a % without two hexadecimal digits behind it")
    }
    guard String(validating: decoded, as: UTF8.self) != nil else {
      throw Refusal(.badRequest, "the query has bytes that are not UTF-8")
    }
    return decoded
  }

  /// The bytes of a parameter, or nil if it is not there.
  package func bytes(_ name: String) -> [UInt8]? { values[name] }

  /// A UUID in lower case.
  package func uuid(_ name: String) throws(Refusal) -> UUID {
    guard let bytes = values[name] else { throw missing(name, .badRequest) }
    guard let uuid = UUID(wireText: String(decoding: bytes, as: UTF8.self)) else {
      throw Refusal(.badRequest, "the parameter \(name) is no UUID in lower case")
    }
    return uuid
  }

  /// A sequence, 0 to 2^53 - 1, or nil if it is not there.
  package func sequence(_ name: String, _ code: HubCode) throws(Refusal) -> UInt64? {
    try integer(name, code, 0...WireLimits.sequenceMax)
  }

  /// A sequence that must be there.
  package func requiredSequence(_ name: String, _ code: HubCode) throws(Refusal) -> UInt64 {
    guard let value = try sequence(name, code) else { throw missing(name, code) }
    return value
  }

  /// An integer within a range, or nil if it is not there.
  package func count(_ name: String, _ range: ClosedRange<UInt64>) throws(Refusal) -> Int? {
    try integer(name, .badRequest, range).map { Int($0) }
  }

  /// An integer within a range that must be there.
  package func requiredCount(
    _ name: String, _ range: ClosedRange<UInt64>
  ) throws(Refusal) -> Int {
    guard let value = try count(name, range) else { throw missing(name, .badRequest) }
    return value
  }

  private func integer(
    _ name: String, _ code: HubCode, _ range: ClosedRange<UInt64>
  ) throws(Refusal) -> UInt64? {
    guard let bytes = values[name] else { return nil }
    let isCanonical =
      !bytes.isEmpty && bytes.count <= 16
      && bytes.allSatisfy { $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }
      && (bytes.count == 1 || bytes.first != UInt8(ascii: "0"))
    guard isCanonical, let value = UInt64(String(decoding: bytes, as: UTF8.self)),
      range.contains(value)
    else {
      throw Refusal(
        code,
        "the parameter \(name) is no integer from \(range.lowerBound) to \(range.upperBound)")
    }
    return value
  }

  private func missing(_ name: String, _ code: HubCode) -> Refusal {
    Refusal(code, "the parameter \(name) is missing")
  }
}

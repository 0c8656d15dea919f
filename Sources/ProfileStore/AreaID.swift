package import Foundation

/// An area's random ID: the name of its directory, never made from an account.
public struct AreaID: Hashable, Sendable, CustomStringConvertible {
  package let uuid: UUID

  package init(uuid: UUID) { self.uuid = uuid }

  /// Reads 32 hexadecimal digits, as ``description`` writes them.
  public init?(_ text: String) {
    let digits = Array(text.utf8)
    guard digits.count == 32 else { return nil }
    var bytes: [UInt8] = []
    for index in stride(from: 0, to: 32, by: 2) {
      guard let high = Self.value(of: digits[index]), let low = Self.value(of: digits[index + 1])
      else { return nil }
      bytes.append(high << 4 | low)
    }
    uuid = NSUUID(uuidBytes: bytes) as UUID
  }

  /// 32 lower-case hexadecimal digits.
  public var description: String {
    withUnsafeBytes(of: uuid.uuid) { bytes in
      let digits = Array("0123456789abcdef".utf8)
      var text: [UInt8] = []
      for byte in bytes {
        text.append(digits[Int(byte >> 4)])
        text.append(digits[Int(byte & 15)])
      }
      return String(decoding: text, as: UTF8.self)
    }
  }

  private static func value(of digit: UInt8) -> UInt8? {
    switch digit {
    case 48...57: digit - 48
    case 97...102: digit - 87
    default: nil
    }
  }
}

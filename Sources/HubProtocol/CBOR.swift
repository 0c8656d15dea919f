/// The bytes of RFC 8949 that this protocol uses.
enum CBOR {
  /// The three highest bits of a value's first byte (section 3.1).
  enum MajorType: UInt8 {
    case unsigned = 0
    case negative = 1
    case bytes = 2
    case text = 3
    case array = 4
    case map = 5
    case tag = 6
    case simple = 7

    /// The type that a first byte says.
    @inline(__always)
    init(_ firstByte: UInt8) {
      switch firstByte >> 5 {
      case 0: self = .unsigned
      case 1: self = .negative
      case 2: self = .bytes
      case 3: self = .text
      case 4: self = .array
      case 5: self = .map
      case 6: self = .tag
      default: self = .simple
      }
    }

    /// The length may be left open (section 3.2.1), which this protocol does not use.
    var mayBeIndefinite: Bool {
      switch self {
      case .bytes, .text, .array, .map: true
      case .unsigned, .negative, .tag, .simple: false
      }
    }
  }

  static let `false`: UInt8 = 0xf4
  static let `true`: UInt8 = 0xf5
  static let null: UInt8 = 0xf6

  /// The least argument that needs so many bytes behind the first: 1, 2, 4 or 8.
  static func leastArgument(byteCount: Int) -> UInt64 {
    switch byteCount {
    case 1: 24
    case 2: 1 << 8
    case 4: 1 << 16
    default: 1 << 32
    }
  }
}

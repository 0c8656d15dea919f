import Foundation

/// Writes CBOR (RFC 8949) as ``CBORReader`` reads it.
struct CBORWriter: WireWriter {
  private(set) var bytes: [UInt8] = []
  /// The objects that are open: where each begins, and how many members it has so far.
  private var open: [(offset: Int, memberCount: UInt8)] = []

  init(byteCountHint: Int) {
    bytes.reserveCapacity(byteCountHint)
  }

  mutating func beginObject() {
    open.append((bytes.count, 0))
    bytes.append(CBOR.MajorType.map.rawValue << 5)
  }

  mutating func endObject() {
    guard let object = open.popLast() else { preconditionFailure("no object is open") }
    // The count is known only now, and fits into the byte that was written for it.
    precondition(object.memberCount < 24, "an object of the protocol has less than 24 members")
    bytes[object.offset] |= object.memberCount
  }

  mutating func beginList(count: Int) {
    header(.array, UInt64(count))
  }

  mutating func endList() {}

  mutating func name(_ name: String) {
    open[open.count - 1].memberCount += 1
    let utf8 = name.utf8
    header(.text, UInt64(utf8.count))
    bytes.append(contentsOf: utf8)
  }

  mutating func null() { bytes.append(CBOR.null) }

  mutating func bool(_ value: Bool) { bytes.append(value ? CBOR.true : CBOR.false) }

  mutating func unsigned(_ value: UInt64) { header(.unsigned, value) }

  mutating func uuid(_ value: UUID) {
    header(.text, 36)
    value.appendWireText(to: &bytes)
  }

  mutating func text(_ utf8: [UInt8]) {
    header(.text, UInt64(utf8.count))
    bytes.append(contentsOf: utf8)
  }

  mutating func payload(_ value: Data) {
    header(.bytes, UInt64(value.count))
    bytes.append(contentsOf: value)
  }

  /// A message whose last member is a list that is encoded already.
  /// - Parameter head: the members before it, and its name.
  static func message(
    byteCountHint: Int, list: [UInt8], count: Int, head: (inout CBORWriter) -> Void
  ) -> Data {
    var writer = CBORWriter(byteCountHint: byteCountHint)
    writer.beginObject()
    head(&writer)
    writer.beginList(count: count)
    writer.endList()
    writer.endObject()
    var data = Data(capacity: writer.bytes.count + list.count)
    data.append(contentsOf: writer.bytes)
    data.append(contentsOf: list)
    return data
  }

  /// A text by itself: names, which are the same in every object.
  static func text(_ text: String) -> [UInt8] {
    var writer = CBORWriter(byteCountHint: 16)
    writer.text(Array(text.utf8))
    return writer.bytes
  }

  /// Bytes that are CBOR already.
  mutating func copy(_ encoded: [UInt8]) { bytes.append(contentsOf: encoded) }

  /// A text that lies elsewhere: valid UTF-8.
  mutating func text(span: RawSpan) {
    header(.text, UInt64(span.byteCount))
    append(span)
  }

  /// A payload that lies elsewhere.
  mutating func payload(span: RawSpan) {
    header(.bytes, UInt64(span.byteCount))
    append(span)
  }

  private mutating func append(_ span: RawSpan) {
    // SAFETY: the buffer is read within the closure only.
    span.withUnsafeBytes { bytes.append(contentsOf: $0) }
  }

  /// The head of a value, in its shortest form: RFC 8949 section 3.
  private mutating func header(_ type: CBOR.MajorType, _ argument: UInt64) {
    let major = type.rawValue << 5
    switch argument {
    case 0..<24:
      bytes.append(major | UInt8(argument))
    case 24..<CBOR.leastArgument(byteCount: 2):
      bytes.append(major | 24)
      bytes.append(UInt8(argument))
    case CBOR.leastArgument(byteCount: 2)..<CBOR.leastArgument(byteCount: 4):
      bytes.append(major | 25)
      appendBigEndian(UInt16(argument))
    case CBOR.leastArgument(byteCount: 4)..<CBOR.leastArgument(byteCount: 8):
      bytes.append(major | 26)
      appendBigEndian(UInt32(argument))
    default:
      bytes.append(major | 27)
      appendBigEndian(argument)
    }
  }

  private mutating func appendBigEndian<Value: FixedWidthInteger>(_ value: Value) {
    var shift = Value.bitWidth
    while shift > 0 {
      shift -= 8
      bytes.append(UInt8(truncatingIfNeeded: value >> shift))
    }
  }
}

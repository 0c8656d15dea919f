import Foundation

/// Reads CBOR that has the very form in which this module writes it: the members in its order, nothing
/// left out and nothing beside them.
///
/// A push and its answer have a thousand objects of the same few members. Who expects them where they
/// stand compares bytes that are known and looks for no name. Whatever is otherwise is not understood
/// here: the reader of all forms reads it then, from the beginning, and says what is wrong with it.
///
/// What is not there is not taken, not even its name: the next question is about the same place.
struct OwnForm {
  /// Used only within the call that lent them.
  let bytes: UnsafeRawBufferPointer
  private(set) var position = 0

  /// Lends a body to `read`.
  /// - Returns: what `read` made of it; nil where it stopped before the end.
  static func read<R>(_ body: [UInt8], _ read: (inout OwnForm) -> R?) -> R? {
    // SAFETY: the bytes are there until the closure returns, and nothing that is made keeps them.
    body.withUnsafeBytes { bytes in
      var form = OwnForm(bytes: bytes)
      guard let value = read(&form), form.position == bytes.count else { return nil }
      return value
    }
  }

  private init(bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

  private var left: Int { bytes.count - position }

  /// The head of an object.
  /// - Returns: how many members it has.
  @inline(__always)
  mutating func object() -> Int? { argument(of: .map).flatMap { $0 < 24 ? Int($0) : nil } }

  /// The head of a list.
  /// - Returns: how many elements it has; not more than there are bytes.
  @inline(__always)
  mutating func list() -> Int? {
    argument(of: .array).flatMap { $0 <= UInt64(left) ? Int($0) : nil }
  }

  /// Takes bytes that are known: names, each with its head, and texts that always are the same.
  ///
  /// A text of less than 24 bytes has one byte before it: a letter, from `a` for one byte on.
  @inline(__always)
  mutating func takes(_ known: StaticString) -> Bool {
    let count = known.utf8CodeUnitCount
    guard left >= count, let start = bytes.baseAddress,
      memcmp(start + position, known.utf8Start, count) == 0
    else { return false }
    position += count
    return true
  }

  /// Takes a name and the UUID that follows.
  /// - Parameter known: the name, and `x$` for the head of 36 bytes of text.
  @inline(__always)
  mutating func uuid(_ known: StaticString) -> UUID? {
    let start = position
    guard takes(known), left >= 36,
      let uuid = UUID(
        wireText: UnsafeRawBufferPointer(rebasing: bytes[position..<position + 36]))
    else { return nothing(from: start) }
    position += 36
    return uuid
  }

  /// Takes a name and the sequence that follows.
  @inline(__always)
  mutating func sequence(_ known: StaticString) -> UInt64? {
    let start = position
    guard takes(known), let value = argument(of: .unsigned), value <= WireLimits.sequenceMax else {
      return nothing(from: start)
    }
    return value
  }

  /// Takes a name and the text that follows.
  /// - Returns: where it lies: valid UTF-8 of 1 to so many bytes.
  @inline(__always)
  mutating func text(_ known: StaticString, byteCountMax: Int) -> Range<Int>? {
    let start = position
    guard takes(known), let count = argument(of: .text), count >= 1, count <= byteCountMax,
      count <= left
    else { return nothing(from: start) }
    let place = position..<position + Int(count)
    guard isUTF8(place) else { return nothing(from: start) }
    position = place.upperBound
    return place
  }

  /// Takes a name and the byte string that follows.
  /// - Returns: where it lies.
  @inline(__always)
  mutating func payload(_ known: StaticString) -> Range<Int>? {
    let start = position
    guard takes(known), let count = argument(of: .bytes), count <= left else {
      return nothing(from: start)
    }
    let place = position..<position + Int(count)
    position = place.upperBound
    return place
  }

  /// Goes back to where something else was looked for.
  private mutating func nothing<T>(from start: Int) -> T? {
    position = start
    return nil
  }

  private func isUTF8(_ place: Range<Int>) -> Bool {
    let text = bytes.bindMemory(to: UInt8.self).extracting(place)
    do {
      _ = try UTF8Span(validating: text.span)
      return true
    } catch {
      return false
    }
  }

  /// The head of a value of one type, in its shortest form: RFC 8949 section 3.
  @inline(__always)
  private mutating func argument(of type: CBOR.MajorType) -> UInt64? {
    guard left > 0, bytes[position] >> 5 == type.rawValue else { return nil }
    let information = bytes[position] & 31
    if information < 24 {
      position += 1
      return UInt64(information)
    }
    guard information < 28 else { return nil }
    let count = 1 << Int(information - 24)
    guard left > count else { return nil }
    var argument: UInt64 = 0
    for offset in 1...count { argument = argument << 8 | UInt64(bytes[position + offset]) }
    guard argument >= CBOR.leastArgument(byteCount: count) else { return nil }
    position += 1 + count
    return argument
  }
}

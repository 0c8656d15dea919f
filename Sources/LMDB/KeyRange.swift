internal import CLMDB
import Foundation

/// Which keys a scan visits, in the order of their bytes.
public enum KeyRange<Key> {
  /// Every key.
  case all
  /// That key and all behind it.
  case from(Key)
  /// All keys behind that one.
  case after(Key)
  /// All keys before that one.
  case before(Key)
  /// All keys up to and with that one.
  case upThrough(Key)
  /// From the first key up to and with the last.
  case through(Key, Key)
  /// From the first key up to the last, without the last.
  case between(Key, Key)
  /// Behind the first key, up to and with the last.
  case afterThrough(Key, Key)
  /// Every key whose bytes begin with that key's bytes; every key if that has none.
  case prefix(Key)
  /// Every key that begins with these bytes, every key if there are none; composite codecs make
  /// them.
  case encodedPrefix([UInt8])

  /// `first..<last`.
  public init(_ range: Range<Key>) where Key: Comparable {
    self = .between(range.lowerBound, range.upperBound)
  }

  /// `first...last`.
  public init(_ range: ClosedRange<Key>) where Key: Comparable {
    self = .through(range.lowerBound, range.upperBound)
  }
}

extension KeyRange: Sendable where Key: Sendable {}

/// How one end of a range is meant.
@usableFromInline
enum EdgeKind {
  case none
  case inclusive
  case exclusive
}

/// Both ends of a range as bytes. A missing end has no bytes.
@usableFromInline
struct Edges: ~Escapable {
  let lower: RawSpan
  let lowerKind: EdgeKind
  let upper: RawSpan
  let upperKind: EdgeKind

  @usableFromInline
  @_lifetime(copy lower, copy upper)
  init(_ lower: RawSpan, _ lowerKind: EdgeKind, _ upper: RawSpan, _ upperKind: EdgeKind) {
    self.lower = lower
    self.lowerKind = lowerKind
    self.upper = upper
    self.upperKind = upperKind
  }

  /// - Throws: `badKeySize` when a key of the range has 0 or more than 511 bytes.
  func check(_ core: TransactionCore, _ table: TableBase) throws(LMDBError) {
    if lowerKind != .none {
      try core.checkKey(byteCount: lower.byteCount, "mdb_cursor_get", table)
    }
    if upperKind != .none {
      try core.checkKey(byteCount: upper.byteCount, "mdb_cursor_get", table)
    }
  }

  /// Whether a key is still within the end that a scan runs towards.
  @inline(__always)
  func contains(_ key: MDB_val, reversed: Bool) -> Bool {
    switch reversed ? lowerKind : upperKind {
    case .none: return true
    case .inclusive:
      let order = unsafe compare(key, reversed ? lower : upper)
      return reversed ? order >= 0 : order <= 0
    case .exclusive:
      let order = unsafe compare(key, reversed ? lower : upper)
      return reversed ? order > 0 : order < 0
    }
  }

  /// Puts a cursor on the first entry to visit.
  /// - Returns: LMDB's answer; `MDB_NOTFOUND` when there is no entry on that side.
  func place(
    _ cursor: OpaquePointer?, _ key: inout MDB_val, _ value: inout MDB_val, reversed: Bool,
    hasDuplicates: Bool
  ) -> Int32 {
    let kind = reversed ? upperKind : lowerKind
    if kind == .none {
      return unsafe mdb_cursor_get(cursor, &key, &value, reversed ? MDB_LAST : MDB_FIRST)
    }
    let edge = reversed ? upper : lower
    let result = unsafe edge.withUnsafeBytes { bytes in
      unsafe key = MDB_val(bytes)
      return unsafe mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE)
    }
    if reversed {
      if result == MDB_NOTFOUND {
        return unsafe mdb_cursor_get(cursor, &key, &value, MDB_LAST)
      }
      guard result == 0 else { return result }
      if kind == .inclusive, unsafe compare(key, edge) == 0 {
        // Backwards, the values of one key come last first.
        guard hasDuplicates else { return 0 }
        let last = unsafe mdb_cursor_get(cursor, &key, &value, MDB_LAST_DUP)
        guard last == 0 else { return last }
        return unsafe mdb_cursor_get(cursor, &key, &value, MDB_GET_CURRENT)
      }
      return unsafe mdb_cursor_get(cursor, &key, &value, MDB_PREV_NODUP)
    }
    guard result == 0, kind == .exclusive, unsafe compare(key, edge) == 0 else { return result }
    return unsafe mdb_cursor_get(cursor, &key, &value, MDB_NEXT_NODUP)
  }
}

extension KeyRange {
  /// Lends the range's ends as bytes.
  @inlinable
  func withEdges<K: KeyCodec, R>(
    _ codec: K.Type, _ body: (borrowing Edges) throws -> R
  ) throws -> R where K.Key == Key {
    let none = RawSpan()
    switch self {
    case .all:
      return try body(Edges(none, .none, none, .none))
    case .from(let key):
      return try K.withEncodedKey(key) { try body(Edges($0, .inclusive, none, .none)) }
    case .after(let key):
      return try K.withEncodedKey(key) { try body(Edges($0, .exclusive, none, .none)) }
    case .before(let key):
      return try K.withEncodedKey(key) { try body(Edges(none, .none, $0, .exclusive)) }
    case .upThrough(let key):
      return try K.withEncodedKey(key) { try body(Edges(none, .none, $0, .inclusive)) }
    case .through(let first, let last):
      return try K.withEncodedKey(first) { lower in
        try K.withEncodedKey(last) { try body(Edges(lower, .inclusive, $0, .inclusive)) }
      }
    case .between(let first, let last):
      return try K.withEncodedKey(first) { lower in
        try K.withEncodedKey(last) { try body(Edges(lower, .inclusive, $0, .exclusive)) }
      }
    case .afterThrough(let first, let last):
      return try K.withEncodedKey(first) { lower in
        try K.withEncodedKey(last) { try body(Edges(lower, .exclusive, $0, .inclusive)) }
      }
    case .prefix(let key):
      return try K.withEncodedKey(key) { try withPrefixEdges($0, body) }
    case .encodedPrefix(let bytes):
      return try withPrefixEdges(unsafe bytes.span.bytes, body)
    }
  }
}

/// Lends the ends of the range of keys that begin with a prefix.
@usableFromInline
func withPrefixEdges<R>(
  _ prefix: RawSpan, _ body: (borrowing Edges) throws -> R
) throws -> R {
  if prefix.isEmpty { return try body(Edges(prefix, .none, prefix, .none)) }
  var successor = KeyBuffer()
  guard successor.becomeSuccessor(of: prefix) else {
    return try body(Edges(prefix, .inclusive, RawSpan(), .none))
  }
  return try body(Edges(prefix, .inclusive, successor.bytes, .exclusive))
}

extension KeyBuffer {
  /// Becomes the first key behind every key with that prefix.
  /// - Returns: false if there is none (all bytes are 0xff).
  mutating func becomeSuccessor(of prefix: RawSpan) -> Bool {
    var count = prefix.byteCount
    // SAFETY: the offset lies within the span, and any byte is an integer.
    while count > 0, unsafe prefix.unsafeLoad(fromByteOffset: count - 1, as: UInt8.self) == 0xFF {
      count -= 1
    }
    guard count > 0, count <= Self.byteCountMax else { return false }
    append(prefix.extracting(0..<count - 1))
    append(unsafe prefix.unsafeLoad(fromByteOffset: count - 1, as: UInt8.self) + 1)
    return true
  }
}

/// LMDB's own order: byte by byte, a prefix before what it begins.
@unsafe @inline(__always)
func compare(_ left: MDB_val, _ right: RawSpan) -> Int {
  let shared = unsafe min(left.mv_size, right.byteCount)
  // SAFETY: `shared` is at most the size of both.
  let order = unsafe right.withUnsafeBytes { right -> Int32 in
    guard let left = unsafe left.mv_data, let right = right.baseAddress else { return 0 }
    return unsafe memcmp(left, right, shared)
  }
  return unsafe order != 0 ? Int(order) : left.mv_size - right.byteCount
}

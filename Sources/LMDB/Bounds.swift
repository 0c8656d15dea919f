internal import CLMDB

/// The bytes between which a scan runs, from a ``KeyRange``.
@usableFromInline
struct Bounds {
  private enum Limit {
    case none
    case inclusive([UInt8])
    case exclusive([UInt8])
  }

  private var lower = Limit.none
  private var upper = Limit.none

  /// The longest of the range's keys; checked when the scan begins.
  private var longest = 1
  private var shortest = 1

  @usableFromInline
  init<K: KeyCodec>(_ range: KeyRange<K.Key>, codec: K.Type) {
    var sizes: [Int] = []
    func encoded(_ key: K.Key) -> [UInt8] {
      var buffer = KeyBuffer()
      K.encode(key, into: &buffer)
      sizes.append(buffer.byteCount)
      return buffer.bytes.copiedBytes()
    }
    switch range {
    case .all: break
    case .from(let key): lower = .inclusive(encoded(key))
    case .after(let key): lower = .exclusive(encoded(key))
    case .through(let first, let last):
      lower = .inclusive(encoded(first))
      upper = .inclusive(encoded(last))
    case .prefix(let key):
      let bytes = encoded(key)
      lower = .inclusive(bytes)
      upper = Self.successor(of: bytes).map { .exclusive($0) } ?? .none
    }
    longest = sizes.max() ?? 1
    shortest = sizes.min() ?? 1
  }

  /// - Throws: `badKeySize` when a key of the range has 0 or more than 511 bytes.
  func check(_ environment: Environment, _ table: String) throws(LMDBError) {
    try environment.checkKey(byteCount: longest, "mdb_cursor_get", table)
    try environment.checkKey(byteCount: shortest, "mdb_cursor_get", table)
  }

  /// The first key behind every key with that prefix; nil if there is none (all bytes 0xff).
  static func successor(of prefix: [UInt8]) -> [UInt8]? {
    guard let last = prefix.lastIndex(where: { $0 != 0xFF }) else { return nil }
    var next = Array(prefix[...last])
    next[last] += 1
    return next
  }

  /// Whether a key is still within the limit that the scan runs towards.
  func contains(_ key: RawSpan, reversed: Bool) -> Bool {
    switch reversed ? lower : upper {
    case .none: return true
    case .inclusive(let bytes):
      let order = unsafe compareBytes(key, bytes.span.bytes)
      return reversed ? order >= 0 : order <= 0
    case .exclusive(let bytes):
      let order = unsafe compareBytes(key, bytes.span.bytes)
      return reversed ? order > 0 : order < 0
    }
  }

  /// Puts a cursor on the first entry to visit.
  /// - Returns: false if there is none on that side.
  @unsafe func place(
    _ cursor: OpaquePointer?, _ key: inout MDB_val, _ value: inout MDB_val, reversed: Bool,
    _ environment: Environment, _ table: String
  ) throws(LMDBError) -> Bool {
    func move(_ operation: MDB_cursor_op) throws(LMDBError) -> Bool {
      try environment.checkFound(
        unsafe mdb_cursor_get(cursor, &key, &value, operation), "mdb_cursor_get", table)
    }
    func seek(_ bytes: [UInt8]) throws(LMDBError) -> Bool {
      let result = unsafe bytes.span.bytes.withUnsafeBytes { bytes in
        unsafe key = MDB_val(bytes)
        return unsafe mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE)
      }
      return try environment.checkFound(result, "mdb_cursor_get", table)
    }
    func isOn(_ bytes: [UInt8]) -> Bool {
      unsafe compareBytes(
        UnsafeRawBufferPointer(start: key.mv_data, count: key.mv_size).bytes, bytes.span.bytes) == 0
    }
    switch (reversed ? upper : lower, reversed) {
    case (.none, false): return try move(MDB_FIRST)
    case (.none, true): return try move(MDB_LAST)
    case (.inclusive(let bytes), false): return try seek(bytes)
    case (.exclusive(let bytes), false):
      guard try seek(bytes) else { return false }
      return isOn(bytes) ? try move(MDB_NEXT) : true
    case (.inclusive(let bytes), true):
      guard try seek(bytes) else { return try move(MDB_LAST) }
      return isOn(bytes) ? true : try move(MDB_PREV)
    case (.exclusive(let bytes), true):
      return try seek(bytes) ? try move(MDB_PREV) : try move(MDB_LAST)
    }
  }
}

/// LMDB's own order: byte by byte, a prefix before what it begins.
func compareBytes(_ left: RawSpan, _ right: RawSpan) -> Int {
  let shared = min(left.byteCount, right.byteCount)
  for offset in 0..<shared {
    // SAFETY: the offset lies within both spans.
    let a = unsafe left.unsafeLoad(fromByteOffset: offset, as: UInt8.self)
    let b = unsafe right.unsafeLoad(fromByteOffset: offset, as: UInt8.self)
    if a != b { return a < b ? -1 : 1 }
  }
  return left.byteCount - right.byteCount
}

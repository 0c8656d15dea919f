/// A table as it must be: what was put, sorted by the bytes of the keys.
struct SortedModel: Equatable {
  typealias Bytes = [UInt8]
  private(set) var keys: [Bytes] = []
  private(set) var values: [Bytes] = []

  var count: Int { keys.count }

  /// The place of a key, or where it belongs.
  private func place(_ key: Bytes) -> (index: Int, isThere: Bool) {
    var low = 0
    var high = keys.count
    while low < high {
      let middle = (low + high) / 2
      if keys[middle].lexicographicallyPrecedes(key) { low = middle + 1 } else { high = middle }
    }
    return (low, low < keys.count && keys[low] == key)
  }

  func value(of key: Bytes) -> Bytes? {
    let (index, isThere) = place(key)
    return isThere ? values[index] : nil
  }

  mutating func put(_ value: Bytes, for key: Bytes) {
    let (index, isThere) = place(key)
    if isThere {
      values[index] = value
    } else {
      keys.insert(key, at: index)
      values.insert(value, at: index)
    }
  }

  mutating func delete(_ key: Bytes) -> Bool {
    let (index, isThere) = place(key)
    if isThere { remove(index..<index + 1) }
    return isThere
  }

  mutating func remove(_ range: Range<Int>) {
    keys.removeSubrange(range)
    values.removeSubrange(range)
  }

  /// Where a range of keys lies.
  func indices(_ range: ModelRange) -> Range<Int> {
    let first = count { range.isBehind($0) }
    return first..<count { range.isBehind($0) || range.contains($0) }
  }

  /// How many keys at the front have a property that no key behind them has.
  private func count(where isInFront: (Bytes) -> Bool) -> Int {
    var low = 0
    var high = keys.count
    while low < high {
      let middle = (low + high) / 2
      if isInFront(keys[middle]) { low = middle + 1 } else { high = middle }
    }
    return low
  }
}

/// A kind of range, told by a predicate.
enum ModelRange: Sendable {
  case all
  case from(SortedModel.Bytes)
  case after(SortedModel.Bytes)
  case before(SortedModel.Bytes)
  case upThrough(SortedModel.Bytes)
  case through(SortedModel.Bytes, SortedModel.Bytes)
  case between(SortedModel.Bytes, SortedModel.Bytes)
  case afterThrough(SortedModel.Bytes, SortedModel.Bytes)
  case prefix(SortedModel.Bytes)
  case encodedPrefix(SortedModel.Bytes)

  /// Whether the range begins behind a key.
  func isBehind(_ key: SortedModel.Bytes) -> Bool {
    switch self {
    case .all, .before, .upThrough: false
    case .from(let a), .through(let a, _), .between(let a, _), .prefix(let a),
      .encodedPrefix(let a):
      less(key, a)
    case .after(let a), .afterThrough(let a, _): !less(a, key)
    }
  }

  func contains(_ key: SortedModel.Bytes) -> Bool {
    switch self {
    case .all: true
    case .from(let a): !less(key, a)
    case .after(let a): less(a, key)
    case .before(let a): less(key, a)
    case .upThrough(let a): !less(a, key)
    case .through(let a, let b): !less(key, a) && !less(b, key)
    case .between(let a, let b): !less(key, a) && less(key, b)
    case .afterThrough(let a, let b): less(a, key) && !less(b, key)
    case .prefix(let a), .encodedPrefix(let a): key.starts(with: a)
    }
  }

  private func less(_ a: SortedModel.Bytes, _ b: SortedModel.Bytes) -> Bool {
    a.lexicographicallyPrecedes(b)
  }
}

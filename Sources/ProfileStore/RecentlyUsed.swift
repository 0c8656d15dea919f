/// A bounded number of values by their keys; what was used longest ago makes room. A value: no lock,
/// no clock.
struct RecentlyUsed<Key: Hashable, Value> {
  private struct Node {
    let key: Key
    let value: Value
    /// Used next after this one; -1: this was used last.
    var newer: Int
    /// Used before this one; -1: this was used longest ago.
    var older: Int
  }

  /// The most values that are kept; 0 keeps none.
  let countMax: Int
  private var places: [Key: Int] = [:]
  /// `nil` where one was taken out.
  private var nodes: [Node?] = []
  private var free: [Int] = []
  private var newest = -1
  private var oldest = -1

  init(countMax: Int) { self.countMax = max(0, countMax) }

  var count: Int { places.count }

  /// What is kept, the one that was used last first.
  var entries: [(key: Key, value: Value)] {
    var entries: [(key: Key, value: Value)] = []
    var place = newest
    while place >= 0, let node = nodes[place] {
      entries.append((node.key, node.value))
      place = node.older
    }
    return entries
  }

  /// The value of a key, which counts as used now.
  mutating func use(_ key: Key) -> Value? {
    guard let place = places[key], let node = nodes[place] else { return nil }
    if place != newest {
      unlink(place)
      link(place, node.key, node.value)
    }
    return node.value
  }

  /// Keeps a value, which counts as used now.
  /// - Returns: what is not kept any more: the one of that key, or the one used longest ago.
  mutating func keep(_ value: Value, for key: Key) -> Value? {
    if let place = places[key], let old = nodes[place]?.value {
      unlink(place)
      link(place, key, value)
      return old
    }
    guard countMax > 0 else { return value }
    var removed: Value?
    if places.count == countMax, let node = nodes[oldest] { removed = remove(node.key) }
    let place = free.popLast() ?? nodes.count
    if place == nodes.count { nodes.append(nil) }
    places[key] = place
    link(place, key, value)
    return removed
  }

  /// Takes a value out.
  @discardableResult
  mutating func remove(_ key: Key) -> Value? {
    guard let place = places.removeValue(forKey: key), let value = nodes[place]?.value else {
      return nil
    }
    unlink(place)
    nodes[place] = nil
    free.append(place)
    return value
  }

  /// Takes out what was used longest ago.
  mutating func removeOldest() -> Value? {
    guard oldest >= 0, let node = nodes[oldest] else { return nil }
    return remove(node.key)
  }

  private mutating func link(_ place: Int, _ key: Key, _ value: Value) {
    nodes[place] = Node(key: key, value: value, newer: -1, older: newest)
    if newest >= 0 { nodes[newest]?.newer = place }
    newest = place
    if oldest < 0 { oldest = place }
  }

  private mutating func unlink(_ place: Int) {
    guard let node = nodes[place] else { return }
    if node.newer >= 0 { nodes[node.newer]?.older = node.older } else { newest = node.older }
    if node.older >= 0 { nodes[node.older]?.newer = node.newer } else { oldest = node.newer }
  }
}

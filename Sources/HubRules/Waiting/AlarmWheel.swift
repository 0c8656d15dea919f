/// Alarms by the tick at which they are due: to set and to remove one costs the same, however many
/// there are. A value without a clock.
package struct AlarmWheel<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  private var alarms: [Int64: [Key: Value]] = [:]
  /// Every tick up to this one was taken.
  private var last = Int64.min

  package init() {}

  package var isEmpty: Bool { alarms.isEmpty }

  /// Sets an alarm; one at a tick that was taken already is due with the next.
  /// - Returns: its tick, which is needed to remove it.
  package mutating func set(_ key: Key, _ value: Value, at tick: Int64) -> Int64 {
    let tick = max(tick, last == .min ? tick : last + 1)
    alarms[tick, default: [:]][key] = value
    return tick
  }

  /// Removes an alarm, if it is still there.
  package mutating func remove(_ key: Key, at tick: Int64) {
    alarms[tick]?.removeValue(forKey: key)
    if alarms[tick]?.isEmpty ?? false { alarms[tick] = nil }
  }

  /// Takes out what is due.
  package mutating func takeDue(through tick: Int64) -> [(key: Key, value: Value)] {
    last = max(last, tick)
    let due = alarms.keys.filter { $0 <= tick }.sorted()
    return due.flatMap { alarms.removeValue(forKey: $0)?.map { ($0.key, $0.value) } ?? [] }
  }
}

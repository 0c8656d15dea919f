/// What was measured, by row and round.
package struct Samples: Sendable {
  /// Names a row.
  package struct Key: Hashable, Sendable {
    package let workload: Workload
    package let engine: Engine
    package let metric: Metric

    package init(_ workload: Workload, _ engine: Engine, _ metric: Metric) {
      self.workload = workload
      self.engine = engine
      self.metric = metric
    }
  }

  private var order: [Key] = []
  private var values: [Key: [Int: Double]] = [:]

  package init() {}

  package mutating func add(_ value: Double, round: Int, to key: Key) {
    if values[key] == nil { order.append(key) }
    values[key, default: [:]][round] = value
  }

  /// The rows: metrics in the order in which they were first measured, engines in theirs.
  package var keys: [Key] {
    var places: [String: Int] = [:]
    for (place, key) in order.enumerated() {
      places[Self.group(key)] = places[Self.group(key)] ?? place
    }
    func place(_ key: Key) -> (Int, Int) {
      (places[Self.group(key)] ?? 0, Engine.allCases.firstIndex(of: key.engine) ?? 0)
    }
    return order.sorted { place($0) < place($1) }
  }

  private static func group(_ key: Key) -> String { key.workload.rawValue + key.metric.name }

  package func values(of key: Key) -> [Double] {
    (values[key] ?? [:]).sorted { $0.key < $1.key }.map(\.value)
  }

  /// Speed over speed, round by round, where both were measured; a cost is turned round.
  package func ratios(of key: Key, to other: Key) -> [Double] {
    guard let mine = values[key], let theirs = values[other] else { return [] }
    return mine.keys.sorted().compactMap { round in
      guard let a = mine[round], let b = theirs[round], a > 0, b > 0 else { return nil }
      return key.metric.isCost ? b / a : a / b
    }
  }

  /// Number over number, round by round, where both were measured; two that are nothing are equal.
  package func shares(of key: Key, in other: Key) -> [Double] {
    guard let mine = values[key], let theirs = values[other] else { return [] }
    return mine.keys.sorted().compactMap { round in
      guard let a = mine[round], let b = theirs[round] else { return nil }
      return b > 0 ? a / b : a > 0 ? .infinity : 1
    }
  }
}

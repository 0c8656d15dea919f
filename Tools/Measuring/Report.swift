/// What a run found, as the JSON has it.
package struct Report: Encodable, Sendable {
  /// Where it ran.
  package struct Machine: Codable, Sendable {
    package var processor: String
    package var cores: Int
    package var memoryByteCount: UInt64
    package var system: String
    package var fileSystem: String

    package init(
      processor: String, cores: Int, memoryByteCount: UInt64, system: String, fileSystem: String
    ) {
      self.processor = processor
      self.cores = cores
      self.memoryByteCount = memoryByteCount
      self.system = system
      self.fileSystem = fileSystem
    }
  }

  package var machine: Machine
  package var commit: String
  package var versions: [String: String]
  /// How many records the workloads have.
  package var records: Int
  package var results: [Row]

  package init(
    machine: Machine, commit: String, versions: [String: String], records: Int, results: [Row]
  ) {
    self.machine = machine
    self.commit = commit
    self.versions = versions
    self.records = records
    self.results = results
  }

  /// The rows whose bars do not hold.
  package var misses: [Row] { results.filter { $0.holds == false } }
}

/// One engine's numbers in one metric.
package struct Row: Encodable, Sendable {
  package let workload: Workload
  package let engine: Engine
  package let metric: Metric
  package let summary: Summary
  /// The median of the rounds' own ratios, speed over speed; nil where speed is not the matter.
  package let ratioToC: Double?
  package let verdicts: [Verdict]

  /// How a bar was met.
  package struct Verdict: Encodable, Sendable {
    package let bar: Bar
    /// The median of the ratios of paired rounds, or the row's own number.
    package let value: Double
    /// Of the same; what a bar near 1 is judged by.
    package let upperQuartile: Double
    /// How many rounds could be compared.
    package let pairs: Int
    package let holds: Bool

    private enum Keys: String, CodingKey {
      case against, bar, value, upperQuartile, pairs, judgedBy, holds
    }

    package func encode(to encoder: any Encoder) throws {
      var container = encoder.container(keyedBy: Keys.self)
      try container.encode(against, forKey: .against)
      try container.encode(bar.limit, forKey: .bar)
      try container.encode(value, forKey: .value)
      try container.encode(upperQuartile, forKey: .upperQuartile)
      try container.encode(pairs, forKey: .pairs)
      try container.encode(bar.isNearOne ? "upperQuartile" : "median", forKey: .judgedBy)
      try container.encode(holds, forKey: .holds)
    }

    private var against: String {
      switch bar.measure {
      case .ratio(let engine, let metric): "\(engine.rawValue): \(metric.name)"
      case .atLeast: "at least"
      case .atMost, .within: "at most"
      case .noMore(let engine, let metric): "no more than \(engine.rawValue): \(metric.name)"
      }
    }
  }

  /// Whether all its bars hold; nil if it has none, or none that this run could judge.
  package var holds: Bool? { verdicts.isEmpty ? nil : verdicts.allSatisfy(\.holds) }

  private enum Keys: String, CodingKey {
    case workload, engine, metric, unit, median, min, max, rounds, ratioToC, bar, bars, holds
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: Keys.self)
    try container.encode(workload, forKey: .workload)
    try container.encode(engine, forKey: .engine)
    try container.encode(metric.name, forKey: .metric)
    try container.encode(metric.unit, forKey: .unit)
    try container.encode(summary.median, forKey: .median)
    try container.encode(summary.min, forKey: .min)
    try container.encode(summary.max, forKey: .max)
    try container.encode(summary.count, forKey: .rounds)
    // Always there, so that a reader need not ask whether it is.
    try container.encode(ratioToC, forKey: .ratioToC)
    guard let first = verdicts.first else { return }
    try container.encode(first.bar.limit, forKey: .bar)
    try container.encode(verdicts, forKey: .bars)
    try container.encode(holds, forKey: .holds)
  }
}

extension Report {
  /// The rows of a run, each judged by its bars.
  package static func rows(of samples: Samples) -> [Row] {
    samples.keys.compactMap { key in
      guard let summary = Summary(samples.values(of: key)) else { return nil }
      var ratio: Double?
      if key.metric.isComparable {
        let base = Samples.Key(key.workload, .c, key.metric.base)
        ratio = Summary(samples.ratios(of: key, to: base))?.median
      }
      return Row(
        workload: key.workload, engine: key.engine, metric: key.metric, summary: summary,
        ratioToC: ratio,
        verdicts: Bar.bars(key.workload, key.engine, key.metric).compactMap {
          verdict(on: $0, key, samples)
        })
    }
  }

  private static func verdict(on bar: Bar, _ key: Samples.Key, _ samples: Samples) -> Row.Verdict? {
    let numbers =
      switch bar.measure {
      case .ratio(let engine, let metric):
        samples.ratios(of: key, to: Samples.Key(key.workload, engine, metric))
      case .noMore(let engine, let metric):
        samples.shares(of: key, in: Samples.Key(key.workload, engine, metric))
      case .atLeast, .atMost, .within: samples.values(of: key)
      }
    guard let summary = Summary(numbers) else { return nil }
    let holds =
      switch bar.measure {
      case .atMost, .noMore: summary.max <= bar.limit
      case .within: summary.median <= bar.limit
      case .ratio, .atLeast:
        (bar.isNearOne ? summary.upperQuartile : summary.median) >= bar.limit
      }
    return Row.Verdict(
      bar: bar, value: summary.median, upperQuartile: summary.upperQuartile, pairs: summary.count,
      holds: holds)
  }
}

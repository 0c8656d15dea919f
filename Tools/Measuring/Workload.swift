/// What is measured, as the command line and the JSON name it.
package enum Workload: String, CaseIterable, Codable, Sendable {
  case applyPages = "W1"
  case scan = "W2"
  case get = "W3"
  case durableWrite = "W4"
  case manyStores = "W5"
  case readBesideWriter = "W6"
  case stagedPages = "staged"
  case readBack = "R1"
  case managedApply = "R2"
  case replay = "R3"
  case enqueue = "R4"
  case push = "R5"
  case switching = "R6"

  /// One line for people.
  package var title: String {
    switch self {
    case .applyPages: "durable transactions of 500 upserts"
    case .scan: "ordered scan in pages of 500, every value byte touched"
    case .get: "random gets"
    case .durableWrite: "durable writes of one record, concurrent callers"
    case .manyStores: "many stores"
    case .readBesideWriter: "two readers scan while a writer applies pages"
    case .stagedPages: "one value for each page of 500 records"
    case .replay: "a whole replay over HTTP on this machine"
    case .push: "mutations pushed over HTTP on this machine"
    case .readBack: "a replay's staged records, read back through the apply closure"
    case .managedApply: "pulled pages of 500 applied: records, metadata and cursor"
    case .enqueue: "mutations enqueued durably"
    case .switching: "switching among many accounts"
    }
  }

  /// What its bars judge.
  package var judged: Engine {
    switch self {
    case .applyPages, .scan, .get, .durableWrite, .manyStores, .readBesideWriter, .stagedPages:
      .lmdb
    case .readBack, .managedApply, .replay, .enqueue, .push, .switching: .holdfast
    }
  }
}

/// What does the work.
package enum Engine: String, CaseIterable, Codable, Sendable {
  /// C straight on liblmdb: the limit.
  case c
  /// The module `LMDB`.
  case lmdb
  /// Profiles: the modules `ProfileStore` and `ProfileSync`.
  case holdfast
  /// SQLite's C API, `synchronous = FULL`.
  case sqliteFull = "sqlite-full"
  /// SQLite's C API, `synchronous = NORMAL`: the last commits may be lost with the power.
  case sqliteNormal = "sqlite-normal"

  /// Those that keep records by key and nothing else.
  package static let stores: [Engine] = [.c, .lmdb, .sqliteFull, .sqliteNormal]
}

/// One number of a workload.
package struct Metric: Hashable, Sendable {
  /// What it is of, within its workload.
  package let name: String
  /// What it counts.
  package let unit: String
  /// Whether less of it is better; a ratio is then turned round, so that higher stays better.
  package let isCost: Bool
  /// Whether two engines may be compared by it.
  package let isComparable: Bool

  init(_ name: String, _ unit: String, isCost: Bool = false, isComparable: Bool = true) {
    self.name = name
    self.unit = unit
    self.isCost = isCost
    self.isComparable = isComparable
  }

  package static let ordered = Metric("keys in order", "records/s")
  package static let shuffled = Metric("keys shuffled", "records/s")
  package static let shuffledByRowID = Metric("keys shuffled, rowid table and index", "records/s")
  package static let plainScan = Metric("plain", "records/s")
  package static let prefetchedScan = Metric("with prefetch", "records/s")
  package static let scanAllocations = Metric(
    "allocations, plain", "per record", isCost: true, isComparable: false)
  package static let prefetchedScanAllocations = Metric(
    "allocations, with prefetch", "per record", isCost: true, isComparable: false)
  package static let getsTogether = Metric("1,000 per transaction", "gets/s")
  package static let getsAlone = Metric("1 per transaction", "gets/s")
  package static let togetherAllocations = Metric(
    "allocations, 1,000 per transaction", "per get", isCost: true, isComparable: false)
  package static let aloneAllocations = Metric(
    "allocations, 1 per transaction", "per get", isCost: true, isComparable: false)
  package static let oneTask = Metric("1 caller, as a task", "writes/s")
  package static let visit = Metric("open, one get, close", "stores/s")
  package static let resident = Metric("500 open, resident", "bytes", isCost: true)
  package static let readers = Metric("both readers", "records/s")
  package static let writer = Metric("the writer", "records/s")
  package static let staging = Metric("apply", "records/s")
  package static let stagedScan = Metric("scan", "records/s")

  /// What C does in its place, where C has no such row of its own.
  package var base: Metric {
    switch self {
    case .oneTask: .writes(callers: 1)
    case .shuffledByRowID: .shuffled
    case .readBackPages: .readBack
    case .batch: .pages
    case .batchShuffled: .pagesShuffled
    case .replay: .replayParts
    case .push: .pushParts
    case .managedPush: .managedPushParts
    default: self
    }
  }

  /// Writes of some callers at once.
  package static func writes(callers: Int) -> Metric {
    Metric(callers == 1 ? "1 caller" : "\(callers) callers", "writes/s")
  }

  /// How many writes of some callers shared a commit.
  package static func grouping(callers: Int) -> Metric {
    Metric("\(callers) callers, shared commits", "writes/commit", isComparable: false)
  }
}

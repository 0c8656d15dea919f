// What is measured of profiles and their passes.
extension Metric {
  // MARK: R1

  package static let readBack = Metric("50,000 records", "records/s")
  package static let readBackPages = Metric("one value for each page", "records/s")
  package static let filtering = Metric("R1b: what is older left out", "records/s")
  package static let editFlags = Metric("R1b: edits that wait flagged", "records/s")

  // MARK: R2

  package static let applyOrdered = Metric("IDs in order", "records/s")
  package static let applyShuffled = Metric("IDs shuffled", "records/s")
  package static let applyUpdates = Metric("IDs shuffled, a second time", "records/s")
  /// How much larger the file is after the second time, in units of the keys and values in it.
  package static let updateGrowth = Metric(
    "growth by the second time", "of live data", isCost: true, isComparable: false)
  /// The file's size after the second time, likewise.
  package static let updatedSize = Metric(
    "file after the second time", "of live data", isCost: true, isComparable: false)
  package static let applyCommits = Metric("durable commits", "per page", isComparable: false)
  package static let decoding = Metric("of that, decoding pages alone", "records/s")

  // MARK: R3

  package static let replay = Metric("the whole replay", "s", isCost: true)
  package static let replayFetch = Metric("part: bare HTTP, the same bytes", "s", isCost: true)
  package static let replayStage = Metric("part: staging", "s", isCost: true)
  package static let replayApply = Metric("part: managed apply (R2)", "s", isCost: true)
  package static let replayParts = Metric("the parts together", "s", isCost: true)
  package static let replayCommits = Metric("durable commits", "per replay", isComparable: false)
  package static let replayMemory = Metric(
    "anonymous memory above idle", "bytes", isCost: true, isComparable: false)

  // MARK: R4

  /// Pages of 500 records in durable transactions, as W1 has them.
  package static let pages = Metric("W1, keys in order", "records/s")
  package static let pagesShuffled = Metric("W1, keys shuffled", "records/s")
  package static let batch = Metric("one batch, IDs in order", "records/s")
  package static let batchShuffled = Metric("one batch, IDs shuffled", "records/s")
  package static let batchCommits = Metric(
    "one batch, durable commits", "per batch", isComparable: false)
  package static let enqueueCommits = Metric(
    "1 caller, durable commits", "per mutation", isComparable: false)

  /// What one mutation writes to files, in an empty outbox and in one where many wait.
  package static func enqueueBytes(deep: Bool) -> Metric {
    Metric("bytes, \(depth(deep))", "per mutation", isCost: true)
  }

  /// How often it waits for a disk.
  package static func enqueueFlushes(deep: Bool) -> Metric {
    Metric("flushes, \(depth(deep))", "per mutation", isCost: true)
  }

  /// How many rows it puts or deletes.
  package static func enqueueRows(deep: Bool) -> Metric {
    Metric("rows, \(depth(deep))", "per mutation", isComparable: false)
  }

  /// In how many tables these are.
  package static func enqueueTables(deep: Bool) -> Metric {
    Metric("tables, \(depth(deep))", "per mutation", isComparable: false)
  }

  private static func depth(_ isDeep: Bool) -> String { isDeep ? "depth 10,000" : "depth 0" }

  // MARK: R5

  package static let push = Metric("the whole push", "s", isCost: true)
  package static let pushBare = Metric("part: bare HTTP, the same bytes", "s", isCost: true)
  package static let pushHubRows = Metric("part: the hub's rows", "s", isCost: true)
  package static let pushClientRows = Metric("part: the client's deletes", "s", isCost: true)
  package static let pushParts = Metric("the parts together", "s", isCost: true)
  package static let managedPush = Metric(
    "the whole push, records in the area", "s", isCost: true)
  package static let managedPushClientRows = Metric(
    "part: the client's rows, records in the area", "s", isCost: true)
  package static let managedPushParts = Metric(
    "the parts together, records in the area", "s", isCost: true)
  package static let pushCommits = Metric(
    "durable commits of the client", "per batch", isComparable: false)

  // MARK: R6

  package static let switchClosed = Metric("to a closed profile", "us", isCost: true)
  package static let switchOpen = Metric("to an open profile", "us", isCost: true)
  package static let switchCommits = Metric("durable commits", "per switch", isComparable: false)
  package static let lookupFew = Metric("lookup among 10 accounts", "us", isCost: true)
  package static let lookupMany = Metric("lookup among 100,000 accounts", "us", isCost: true)
}

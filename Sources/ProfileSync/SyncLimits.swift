/// What a pass brings at most at once. (Contract section 7.)
package enum SyncLimits {
  /// Records in a batch that is handed over, and in a page.
  static let batchCountMax = 500
  /// Bytes in a batch, and in the pages that share a commit; a single larger record comes alone.
  package static let batchByteCountMax = 16 << 20
  /// Pages that share a commit where the area keeps the records.
  static let commitPageCountMax = 32
  /// Bytes of the mutations in one push, whatever the hub takes.
  static let pushByteCountMax = 32 << 20
  /// Batches of the outbox that are looked up ahead of the one that goes, and their bytes; a single larger
  /// one comes alone.
  static let aheadBatchCountMax = 6
  static let aheadByteCountMax = 4 << 20
  /// Batches of a push that share the commit which settles them, and how long the first of them waits for
  /// the others while the next one is at the hub.
  static let settledTogetherCount = 2
  static let settlingPatience = Duration.milliseconds(10)
  /// Pages in one leg of a scan from zero.
  static let legPageCountMax = 100
  /// Pages that a plain pull follows beyond the high water at its beginning.
  static let extraPageCountMax = 100
}

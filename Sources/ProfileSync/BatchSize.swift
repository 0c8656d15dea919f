package import ProfileStore

/// Decides which pages share a commit.
///
/// An app that saves a batch gets a page at a time, or some small ones. Where the area keeps the
/// records itself a commit is the dearest part, and more so the more pages of the tables it writes:
/// many pages share one.
package struct BatchSize {
  private let pageCountMax: Int
  private let countMax: Int
  private var pageCount = 0
  private var count = 0
  private var byteCount = 0

  package init(hasClosure: Bool) {
    pageCountMax = hasClosure ? .max : SyncLimits.commitPageCountMax
    countMax = hasClosure ? SyncLimits.batchCountMax : .max
  }

  /// Whether the page goes along with those that were taken; the first one always does.
  package mutating func takes(_ page: ChangePage) -> Bool {
    guard
      pageCount == 0
        || (pageCount < pageCountMax && count + page.count <= countMax
          && byteCount + page.byteCount <= SyncLimits.batchByteCountMax)
    else { return false }
    pageCount += 1
    count += page.count
    byteCount += page.byteCount
    return true
  }
}

/// Which parts of a row of pages are to be read ahead of somebody who looks at one after another: two
/// parts at the beginning, then one whenever the last part but one is begun.
package struct ReadAhead: Equatable {
  private let pageCount: Int
  private let part: Int
  /// The first page that was not asked for.
  private var end = 0
  /// The page at which the next ones are asked for.
  private var mark = 0

  /// - Parameters:
  ///   - byteCount: of all pages; they count as equally large.
  ///   - partByteCount: of a part, which has one page at least.
  package init(pageCount: Int, byteCount: Int, partByteCount: Int) {
    self.pageCount = pageCount
    part = max(1, pageCount * partByteCount / max(byteCount, 1))
  }

  /// What is to be read now that a page is looked at; nil: nothing. No page is named twice, and none
  /// before this one.
  package mutating func next(at page: Int) -> Range<Int>? {
    guard page >= mark, end < pageCount else { return nil }
    let start = max(end, page)
    let next = min(pageCount, start + (start == page ? 2 * part : part))
    (mark, end) = (max(next - part, page + 1), next)
    return start < next ? start..<next : nil
  }
}

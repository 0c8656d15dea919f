package import HubProtocol
import ProfileStore

/// Whether a page is what was asked for. A page that is not is used in nothing. (Contract
/// section 8: a wrong account, epoch, order or duplicate.)
package enum PageCheck {
  /// - Returns: what is wrong, in words without data; nil when the page may be used.
  package static func fault(in page: ChangesOutline, asked: ChangesQuery) -> String? {
    if page.after != asked.after { return "the page begins elsewhere than was asked" }
    if page.records.count > asked.limit { return "the page has more records than were asked for" }
    let end = min(asked.until ?? page.highWater, page.highWater)
    var last = asked.after
    for record in page.records {
      if record.version <= last { return "the page is out of order" }
      if record.version > end { return "the page goes beyond its end" }
      last = record.version
    }
    if hasDuplicates(page) { return "a record is twice in the page" }
    if page.more {
      if page.records.isEmpty || page.next != last {
        return "the page says there is more and does not move on"
      }
      if last >= end { return "the page says there is more behind its end" }
    } else if page.next != max(asked.after, end) {
      return "the last page ends elsewhere than it was to"
    }
    return nil
  }

  private static func hasDuplicates(_ page: ChangesOutline) -> Bool {
    let body = page.body.span.bytes
    var seen = IDTable(capacity: page.records.count)
    for (index, record) in page.records.enumerated() {
      let id = body.extracting(record.id)
      let before = seen.put(id, at: UInt64(index)) {
        body.extracting(page.records[Int($0)].id).isEqual(to: id)
      }
      if before != nil { return true }
    }
    return false
  }
}

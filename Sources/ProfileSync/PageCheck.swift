import Foundation
import HubProtocol

/// Whether a page is what was asked for. A page that is not is used in nothing. (Contract
/// section 8: a wrong account, epoch, order or duplicate.)
enum PageCheck {
  /// - Returns: what is wrong, in words without data; nil when the page may be used.
  static func fault(in page: ChangesPage, asked: ChangesQuery) -> String? {
    if page.after != asked.after { return "the page begins elsewhere than was asked" }
    if page.records.count > asked.limit { return "the page has more records than were asked for" }
    var last = asked.after
    var seen: Set<RecordID> = []
    for record in page.records {
      if record.version <= last { return "the page is out of order" }
      if let until = asked.until, record.version > until { return "the page goes beyond its end" }
      if !seen.insert(record.id).inserted { return "a record is twice in the page" }
      last = record.version
    }
    if page.next < last { return "the page's end lies before its records" }
    if page.more, page.records.isEmpty || page.next != last {
      return "the page says there is more and does not move on"
    }
    if let until = asked.until, page.next > until { return "the page goes beyond its end" }
    if !page.more, asked.until == nil, page.next > page.highWater {
      return "the page's end lies above the high water"
    }
    return nil
  }
}

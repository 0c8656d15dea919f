package import ProfileStore

/// Pages of a managed area on their way into a commit, as a value: one commit runs at a time, and the
/// pages that arrive meanwhile share the next one.
package struct CommitLine {
  /// Pages that are committed together.
  package struct Group: Sendable {
    package var pages: [ChangePage] = []
    /// Everything up to it is applied with the group.
    package var cursor: UInt64 = 0
    var size = BatchSize(hasClosure: false)
  }

  private var waiting: [Group] = []

  /// Nothing waits yet.
  package init() {}

  /// Nothing waits.
  package var isEmpty: Bool { waiting.isEmpty }

  /// More than one commit's worth waits: no page is fetched before the running commit has ended.
  package var isFull: Bool { waiting.count > 1 }

  /// - Parameter next: the cursor once all of the page is applied.
  package mutating func add(_ page: PulledPage) {
    for (index, part) in page.parts.enumerated() {
      if waiting.isEmpty || !waiting[waiting.count - 1].size.takes(part) {
        var group = Group()
        _ = group.size.takes(part)
        waiting.append(group)
      }
      let isLast = index == page.parts.count - 1
      waiting[waiting.count - 1].pages.append(part)
      waiting[waiting.count - 1].cursor = isLast ? page.next : part[part.count - 1].version
    }
    // A page without records moves the cursor, too.
    guard page.parts.isEmpty else { return }
    if waiting.isEmpty { waiting.append(Group()) }
    waiting[waiting.count - 1].cursor = page.next
  }

  /// The pages for the next commit; nil when none waits.
  package mutating func take() -> Group? {
    waiting.isEmpty ? nil : waiting.removeFirst()
  }
}

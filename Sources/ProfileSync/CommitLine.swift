package import ProfileStore
import Synchronization

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

/// A commit that runs beside the fetching.
final class RunningCommit: Sendable {
  private let isOver = Atomic(false)
  private let task = Mutex<Task<Void, any Error>?>(nil)
  let group: CommitLine.Group

  init(_ group: CommitLine.Group, _ commit: @escaping @Sendable () async throws -> Void) {
    self.group = group
    task.withLock { task in
      task = Task {
        defer { isOver.store(true, ordering: .releasing) }
        try await commit()
      }
    }
  }

  /// Whether ``wait()`` would not wait.
  var hasEnded: Bool { isOver.load(ordering: .acquiring) }

  /// Waits for its end, also in a cancelled task: what is being written is not left alone.
  /// - Throws: what the commit threw.
  func wait() async throws { try await task.withLock { $0 }?.value }
}

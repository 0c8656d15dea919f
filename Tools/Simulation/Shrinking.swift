/// Finds fewer steps that fail as well.
package enum Shrinking {
  /// How often it is tried at most.
  package static let attemptCountMax = 150

  /// Leaves out as much as can be left out: halves first, then ever smaller parts.
  /// - Parameter fails: whether those that are left still fail.
  package static func fewest<Element>(
    _ all: [Element], fails: ([Element]) -> Bool
  ) -> [Element] {
    var kept = all
    var attempts = 0
    var size = max(1, kept.count / 2)
    while attempts < attemptCountMax {
      var hasShrunk = false
      var start = 0
      while start < kept.count, attempts < attemptCountMax {
        var fewer = kept
        fewer.removeSubrange(start..<min(start + size, kept.count))
        attempts += 1
        if fails(fewer) {
          kept = fewer
          hasShrunk = true
        } else {
          start += size
        }
      }
      if size > 1 {
        size = max(1, min(size / 2, kept.count / 2))
      } else if !hasShrunk {
        break
      }
    }
    return kept
  }
}

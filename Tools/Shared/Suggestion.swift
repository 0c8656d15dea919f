/// Finds the word that a person probably meant.
enum Suggestion {
  /// The candidate nearest to `word`, or `nil` if none is near: at most one slip in a word of up to
  /// five characters, two up to eight, else three. Equally near ones: the first.
  ///
  /// Cost: the length of the word times that of all candidates, which are names we declared.
  static func nearest(to word: String, among candidates: [String]) -> String? {
    // A pasted page can't be a slip of the finger, and would cost.
    guard word.count <= wordLengthMax else { return nil }
    let tolerance = word.count <= 5 ? 1 : word.count <= 8 ? 2 : 3
    return
      candidates
      .map { (candidate: $0, slips: editDistance(word, $0)) }
      .filter { $0.slips <= tolerance && $0.slips < word.count }
      .min { $0.slips < $1.slips }?
      .candidate
  }

  private static let wordLengthMax = 64

  /// The least number of insertions, deletions, substitutions and swaps of neighbors that turn one
  /// word into the other (optimal string alignment: no part is edited twice).
  static func editDistance(_ first: String, _ second: String) -> Int {
    let first = Array(first)
    let second = Array(second)
    guard !first.isEmpty, !second.isEmpty else { return max(first.count, second.count) }
    var beforePrevious: [Int] = []
    var previous = Array(0...second.count)
    for row in 1...first.count {
      var current = [row]
      for column in 1...second.count {
        let same = first[row - 1] == second[column - 1]
        var best = min(
          previous[column] + 1, current[column - 1] + 1, previous[column - 1] + (same ? 0 : 1))
        if row > 1, column > 1, first[row - 1] == second[column - 2],
          first[row - 2] == second[column - 1]
        {
          best = min(best, beforePrevious[column - 2] + 1)
        }
        current.append(best)
      }
      beforePrevious = previous
      previous = current
    }
    return previous[second.count]
  }
}

/// Which pages of a file were seen in use, and which in the free list: two bits a page.
struct PageMarks {
  private var used: [UInt64]
  private var free: [UInt64]
  let count: UInt64

  init(count: UInt64) {
    self.count = count
    let words = Int((count + 63) / 64)
    used = [UInt64](repeating: 0, count: words)
    free = [UInt64](repeating: 0, count: words)
  }

  func isUsed(_ page: UInt64) -> Bool { Self.has(used, page) }
  func isFree(_ page: UInt64) -> Bool { Self.has(free, page) }
  mutating func markUsed(_ page: UInt64) { Self.set(&used, page) }
  mutating func markFree(_ page: UInt64) { Self.set(&free, page) }

  var freeCount: Int { free.reduce(0) { $0 + $1.nonzeroBitCount } }
  var usedCount: Int { used.reduce(0) { $0 + $1.nonzeroBitCount } }

  /// Gives each run of pages that are neither.
  func forEachUnmarkedRun(_ body: (Range<UInt64>) -> Void) {
    var start: UInt64?
    for page in 0..<count {
      if isUsed(page) || isFree(page) {
        if let first = start { body(first..<page) }
        start = nil
      } else if start == nil {
        start = page
      }
    }
    if let first = start { body(first..<count) }
  }

  private static func has(_ words: [UInt64], _ page: UInt64) -> Bool {
    words[Int(page / 64)] & (1 << (page % 64)) != 0
  }

  private static func set(_ words: inout [UInt64], _ page: UInt64) {
    words[Int(page / 64)] |= 1 << (page % 64)
  }
}

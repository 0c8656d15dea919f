/// Reads the leaves of trees from the data file, in key order, and trusts nothing.
struct TreeReader {
  let file: PageFile
  let directory: String
  /// No tree has more pages than the file: a walk that meets more goes in circles.
  private var pagesLeft: UInt64

  init(file: PageFile, meta: MetaRecord) {
    self.file = file
    directory = file.directory
    pagesLeft = meta.lastPage &+ 1
  }

  /// Lends each leaf page of a tree.
  /// - Throws: `damaged` at the first page that is not what its parent promises.
  mutating func forEachLeaf(
    of tree: TreeRecord, _ visit: (borrowing PageBytes) throws(LMDBError) -> Void
  ) throws(LMDBError) {
    guard !tree.isEmpty else { return }
    guard tree.depth >= 1, tree.depth <= PageLayout.depthMax else {
      throw damaged(tree.root, "a tree of depth \(tree.depth)")
    }
    try walk(tree.root, levelsLeft: Int(tree.depth), visit)
  }

  private mutating func walk(
    _ number: UInt64, levelsLeft: Int, _ visit: (borrowing PageBytes) throws(LMDBError) -> Void
  ) throws(LMDBError) {
    guard pagesLeft > 0 else { throw damaged(number, "the pages form a circle") }
    pagesLeft -= 1
    var page = PageBytes(count: file.pageByteCount)
    guard try file.read(number, into: &page) else { throw damaged(number, "behind the file's end") }
    guard page.pageNumber == number, page.hasGoodBounds else { throw damaged(number, "its header") }
    if page.flags.contains(.leaf), levelsLeft == 1 { return try visit(page) }
    guard page.flags == .branch, levelsLeft > 1 else { throw damaged(number, "its kind") }
    for index in 0..<page.nodeCount {
      guard let node = page.node(index, isBranch: true) else { throw damaged(number, "a node") }
      try walk(node.child, levelsLeft: levelsLeft - 1, visit)
    }
  }

  /// Gives each page number of the free list, in the order in which it is stored.
  mutating func forEachFreePage(
    of meta: MetaRecord, _ visit: (UInt64) throws(LMDBError) -> Void
  ) throws(LMDBError) {
    let reader = self
    try forEachLeaf(of: meta.freeList) { page throws(LMDBError) in
      for index in 0..<page.nodeCount {
        guard let node = page.node(index, isBranch: false) else {
          throw reader.damaged(page.pageNumber, "a node")
        }
        try reader.forEachInteger(of: node, in: page, visit)
      }
    }
  }

  /// The numbers of one entry of the free list: how many there are, then that many.
  private func forEachInteger(
    of node: PageNode, in page: borrowing PageBytes, _ visit: (UInt64) throws(LMDBError) -> Void
  ) throws(LMDBError) {
    guard node.flags.contains(.overflow) else {
      let count: UInt64 = page.integer(at: node.data.lowerBound)
      guard count < UInt64(node.data.count / 8) else {
        throw damaged(page.pageNumber, "a list of \(count)")
      }
      for index in 0..<Int(count) {
        try visit(page.integer(at: node.data.lowerBound + 8 + 8 * index))
      }
      return
    }
    let number: UInt64 = page.integer(at: node.data.lowerBound)
    var run = PageBytes(count: file.pageByteCount)
    guard try file.read(number, into: &run), run.pageNumber == number, run.flags == .overflow
    else { throw damaged(number, "no overflow page") }
    let count: UInt64 = run.integer(at: PageLayout.headerByteCount)
    guard count < UInt64(node.valueByteCount / 8) else {
      throw damaged(number, "a list of \(count)")
    }
    // Only the first page of a run has a header, so the numbers go on where the page ends.
    var position = PageLayout.headerByteCount
    var next = number
    for _ in 0..<count {
      position += 8
      if position == file.pageByteCount {
        next += 1
        position = 0
        guard try file.read(next, into: &run) else { throw damaged(next, "behind the file's end") }
      }
      try visit(run.integer(at: position))
    }
  }

  private func damaged(_ page: UInt64, _ what: String) -> LMDBError {
    LMDBError(.damaged, operation: "read", path: directory, detail: "page \(page): \(what)")
  }
}

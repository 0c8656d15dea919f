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

  /// The first bytes of a leaf node's value, also where it stands on overflow pages.
  func integer(at offset: Int, of node: PageNode, in page: borrowing PageBytes) throws(LMDBError)
    -> UInt64
  {
    guard node.flags.contains(.overflow) else {
      return page.integer(at: node.data.lowerBound + offset)
    }
    let number: UInt64 = page.integer(at: node.data.lowerBound)
    var run = PageBytes(count: file.pageByteCount)
    guard try file.read(number, into: &run), run.pageNumber == number, run.flags == .overflow
    else { throw damaged(number, "no overflow page") }
    return run.integer(at: PageLayout.headerByteCount + offset)
  }

  private func damaged(_ page: UInt64, _ what: String) -> LMDBError {
    LMDBError(.damaged, operation: "read", path: directory, detail: "page \(page): \(what)")
  }
}

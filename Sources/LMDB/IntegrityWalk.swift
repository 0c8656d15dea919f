/// Walks every page that one state of a data file reaches, and trusts none of them.
///
/// Each page is visited once at most, since a page that was seen is not entered again: the time is
/// that of reading the file, circles or not. Memory: two bits a page, one page per level, and the
/// findings.
final class IntegrityWalk {
  let file: PageFile
  private let meta: MetaRecord
  private let progress: (IntegrityProgress) throws -> Void
  var marks: PageMarks
  /// Whole pages that the file has.
  private let filePageCount: UInt64
  private var checkedPageCount = 0
  private(set) var findings: [IntegrityFinding] = []
  private(set) var findingCount = 0
  var entryCount = 0
  /// Over the meta page and all pages in the order of the walk, if they are to be summed.
  private(set) var sum = PageSum()
  /// The newest meta page, if they are to be summed: which trees there are, and how large.
  private(set) var head: [UInt64] = []
  private let isSumming: Bool

  /// What the pages of one tree have in common.
  struct Tree {
    var table: String?
    var keyOrder = KeyOrder.bytes
    var duplicateOrder: KeyOrder?
    var isMain = false
    var isFreeList = false
    /// A tree of the values of one key.
    var isDuplicates = false
    /// Whether the values of each key have one size.
    var duplicatesHaveOneSize = false
    /// The length of each value in a tree of duplicates of one size.
    var fixedByteCount: Int?
  }

  /// What was counted in a tree, to be compared with its record.
  struct Counts {
    var branchPages: UInt64 = 0
    var leafPages: UInt64 = 0
    var overflowPages: UInt64 = 0
    var entries: UInt64 = 0
    /// Pages of the trees of duplicates below it.
    var duplicateBranchPages: UInt64 = 0
    var duplicateLeafPages: UInt64 = 0
  }

  init(
    file: PageFile, meta: MetaRecord, isSumming: Bool = false,
    progress: @escaping (IntegrityProgress) throws -> Void
  ) throws(LMDBError) {
    self.isSumming = isSumming
    self.file = file
    self.meta = meta
    self.progress = progress
    let byteCount = try file.byteCount()
    filePageCount = byteCount / UInt64(file.pageByteCount)
    // A page behind the file's end can only be free, and takes eight bytes of the file to be so.
    let most = filePageCount + byteCount / 8
    marks = PageMarks(count: max(PageLayout.metaPageCount, min(meta.lastPage, most) + 1))
    if meta.lastPage > most {
      report(.damagedHead, "the last page is \(meta.lastPage), the file has \(filePageCount)")
    }
  }

  func run() throws -> IntegrityReport {
    for (number, page) in file.metaPages.enumerated() where page == nil {
      report(.damagedHead, page: UInt64(number), "the meta page cannot be read")
    }
    // LMDB reads the state of a commit from the page where that commit writes it, whatever stands there.
    if meta.transaction > 0, file.metaPages[Int(meta.transaction & 1)] != meta {
      report(.damagedHead, "commit \(meta.transaction) stands on the other one's meta page")
    }
    for page in 0..<PageLayout.metaPageCount { marks.markUsed(page) }
    if isSumming {
      var page = PageBytes(count: file.pageByteCount)
      if try file.read(meta.transaction & 1, into: &page) {
        let count = PageLayout.headerByteCount + PageLayout.metaByteCount
        sum.add(page.bytes, count: count)
        head = (0..<Seal.headWordCount).map { page.integer(at: 8 * $0) }
      }
    }
    var main = Tree(isMain: true)
    main.keyOrder = KeyOrder.ofKeys(meta.main.flags)
    if meta.main.flags.contains(.duplicates) {
      main.duplicateOrder = KeyOrder.ofDuplicates(meta.main.flags)
    }
    try walk(meta.main, main)
    try walk(meta.freeList, Tree(keyOrder: .integers, isFreeList: true))
    marks.forEachUnmarkedRun { run in
      report(.pageLeaked, page: run.lowerBound, "\(run.count) page(s) neither in use nor free")
    }
    return IntegrityReport(
      transaction: meta.transaction, pageCount: Int(clamping: marks.count),
      usedPageCount: marks.usedCount, freePageCount: marks.freeCount, entryCount: entryCount,
      findings: findings, findingCount: findingCount)
  }

  /// Walks a tree and compares what it has with its record.
  @discardableResult
  func walk(_ record: TreeRecord, _ tree: Tree) throws -> Counts {
    var counts = Counts()
    if !record.isEmpty {
      if record.depth < 1 || record.depth > PageLayout.depthMax {
        report(.wrongDepth, page: record.root, in: tree.table, "the record says \(record.depth)")
      }
      try walkPage(
        record.root, level: 1, depth: Int(record.depth), bounds: KeyBounds(), tree, &counts)
    } else if record.depth != 0 {
      report(.wrongDepth, in: tree.table, "an empty tree whose record says \(record.depth)")
    }
    compare(
      "branch pages", counts.branchPages, orWith: counts.duplicateBranchPages,
      record.branchPageCount, tree)
    compare(
      "leaf pages", counts.leafPages, orWith: counts.duplicateLeafPages, record.leafPageCount, tree)
    compare("overflow pages", counts.overflowPages, record.overflowPageCount, tree)
    compare("entries", counts.entries, record.entryCount, tree)
    if !tree.isDuplicates, !tree.isMain, !tree.isFreeList { entryCount += Int(counts.entries) }
    return counts
  }

  /// - Parameter duplicates: pages of trees of duplicates, which LMDB 0.9.24 leaves out of the
  ///   table's record and later versions count in; a file written by both has something in between.
  private func compare(
    _ what: String, _ counted: UInt64, orWith duplicates: UInt64 = 0, _ recorded: UInt64,
    _ tree: Tree
  ) {
    guard recorded < counted || recorded - counted > duplicates else { return }
    report(
      .countMismatch, in: tree.table, "\(counted) \(what)\(tree.place), the record says \(recorded)"
    )
  }

  // MARK: - One page

  private func walkPage(
    _ number: UInt64, level: Int, depth: Int, bounds: KeyBounds, _ tree: Tree,
    _ counts: inout Counts
  ) throws {
    guard claim(number, tree) else { return }
    var page = PageBytes(count: file.pageByteCount)
    guard try file.read(number, into: &page) else {
      return report(.pageBeyondEnd, page: number, in: tree.table, "the file ends before it")
    }
    if isSumming { sum.add(page.bytes, count: page.count) }
    checkedPageCount += 1
    if checkedPageCount % 1_024 == 0 {
      try progress(
        IntegrityProgress(
          checkedPageCount: checkedPageCount, pageCount: Int(clamping: marks.count)))
    }
    if page.pageNumber != number {
      report(.wrongPageNumber, page: number, in: tree.table, "it bears \(page.pageNumber)")
    }
    let isFixed = tree.fixedByteCount != nil
    switch page.flags {
    case .branch:
      counts.branchPages += 1
      if level == depth {
        report(.wrongDepth, page: number, in: tree.table, "a branch at \(level)")
      }
      guard level < PageLayout.depthMax else { return }
      try walkBranch(page, level: level, depth: depth, bounds: bounds, tree, &counts)
    case isFixed ? [.leaf, .fixedSizeLeaf] : .leaf:
      counts.leafPages += 1
      if level != depth { report(.wrongDepth, page: number, in: tree.table, "a leaf at \(level)") }
      if let size = tree.fixedByteCount {
        checkFixedKeys(page, number, size, bounds, tree, &counts)
      } else {
        try walkLeaf(page, number, bounds: bounds, tree, &counts)
      }
    default:
      report(.wrongFlags, page: number, in: tree.table, "flags \(page.flags.rawValue)")
    }
  }

  /// Marks a page as used.
  /// - Returns: whether it may be entered.
  func claim(_ number: UInt64, _ tree: Tree) -> Bool {
    guard number >= PageLayout.metaPageCount, number < marks.count else {
      report(.pageBeyondEnd, page: number, in: tree.table, "the last page is \(meta.lastPage)")
      return false
    }
    if marks.isFree(number) {
      report(.pageFreeAndUsed, page: number, in: tree.table, "in use and in the free list")
    }
    guard !marks.isUsed(number) else {
      report(.pageUsedTwice, page: number, in: tree.table, "two places lead to it")
      return false
    }
    marks.markUsed(number)
    return true
  }

  /// Adds the pages of one value.
  func addToSum(_ first: UInt64, pageCount: UInt64) throws {
    guard isSumming else { return }
    let byteCount = Int(pageCount) * file.pageByteCount
    var bytes: [UInt8] = []
    let start = Int64(first) * Int64(file.pageByteCount)
    let count = try file.read(at: start, byteCount: byteCount, into: &bytes)
    sum.add(bytes, count: count)
  }

  private func walkBranch(
    _ page: borrowing PageBytes, level: Int, depth: Int, bounds: KeyBounds, _ tree: Tree,
    _ counts: inout Counts
  ) throws {
    let nodes = checkedNodes(page, isBranch: true, tree)
    for (index, node) in nodes.enumerated() {
      // The first key of a branch stands for all that is smaller, and is not looked at.
      if index > 0 {
        checkKey(page, node, after: index > 1 ? nodes[index - 1] : nil, bounds, tree)
      }
      let child = KeyBounds(
        from: index > 0 ? Array(page.slice(node.key)) : bounds.from,
        to: index + 1 < nodes.count ? Array(page.slice(nodes[index + 1].key)) : bounds.to)
      try walkPage(
        node.child, level: level + 1, depth: depth, bounds: child, tree, &counts)
    }
  }

  /// The nodes of a page that lie inside it.
  func checkedNodes(
    _ page: borrowing PageBytes, isBranch: Bool, _ tree: Tree, at number: UInt64? = nil
  ) -> [PageNode] {
    let number = number ?? page.pageNumber
    guard page.hasGoodBounds else {
      report(
        .badBounds, page: number, in: tree.table, "free from \(page.lower) to \(page.upper)")
      return []
    }
    if page.nodeCount == 0 { report(.badBounds, page: number, in: tree.table, "no entry") }
    var nodes: [PageNode] = []
    var byteCount = 0
    for index in 0..<page.nodeCount {
      guard let node = page.node(index, isBranch: isBranch) else {
        report(.badBounds, page: number, in: tree.table, "entry \(index) is not inside the page")
        continue
      }
      nodes.append(node)
      byteCount += (node.data.upperBound - node.offset + 1) & ~1
    }
    if nodes.count == page.nodeCount, byteCount != page.count - page.upper {
      report(
        .badBounds, page: number, in: tree.table,
        "entries of \(byteCount) bytes in \(page.count - page.upper)")
    }
    return nodes
  }

  /// Checks a key's length and its place.
  func checkKey(
    _ page: borrowing PageBytes, _ node: PageNode, after previous: PageNode?, _ bounds: KeyBounds,
    _ tree: Tree, at number: UInt64? = nil
  ) {
    let number = number ?? page.pageNumber
    let count = node.key.count
    let isGoodSize =
      tree.keyOrder == .integers
      ? count == 4 || count == 8
      : count <= KeyBuffer.byteCountMax && (count > 0 || tree.isDuplicates)
    if !isGoodSize { report(.keySize, page: number, in: tree.table, "\(count) bytes\(tree.place)") }
    let key = page.span(node.key)
    if let previous, !tree.keyOrder.isBefore(page.span(previous.key), key) {
      report(
        .keyOrder, page: number, in: tree.table, "a key is not behind the one before\(tree.place)")
    } else if !bounds.contains(key, tree.keyOrder) {
      report(
        .keyOrder, page: number, in: tree.table, "a key is outside its parent's range\(tree.place)")
    }
  }

  func report(
    _ kind: IntegrityFinding.Kind, page: UInt64? = nil, in table: String? = nil, _ detail: String
  ) {
    findingCount += 1
    guard findings.count < IntegrityReport.findingCountMax else { return }
    findings.append(IntegrityFinding(kind: kind, page: page, table: table, detail: detail))
  }
}

/// From which key on and before which one the keys of a page must stand; nil for no limit.
struct KeyBounds {
  var from: [UInt8]?
  var to: [UInt8]?

  func contains(_ key: RawSpan, _ order: KeyOrder) -> Bool {
    if let from, order.isBefore(key, unsafe from.span.bytes) { return false }
    if let to, !order.isBefore(key, unsafe to.span.bytes) { return false }
    return true
  }
}

extension IntegrityWalk.Tree {
  /// Where it is, behind the table's name.
  var place: String {
    if isFreeList { return " in the free list" }
    if isDuplicates { return " among one key's values" }
    return isMain ? " in the unnamed database" : ""
  }
}

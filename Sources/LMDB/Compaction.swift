/// Writes the pages of a snapshot that are in use one after the other, renumbered, children before
/// their parents: free pages and what leaked stay behind, and so do the bytes of deleted entries.
///
/// The order is that of LMDB's own compacting copy. That one reads through the map, which could not
/// grow meanwhile, refuses a file with leaked pages, and tells neither how far it is nor stops.
struct Compaction {
  private let file: PageFile
  private let target: CopyTarget
  private let pageByteCount: Int
  /// Called after each flush with the bytes written so far.
  private let written: (Int) throws -> Void
  private var buffer: [UInt8] = []
  private var nextPage = PageLayout.metaPageCount
  private var pagesLeft: UInt64

  static let bufferByteCount = 1 << 20

  init(
    _ snapshot: HeldSnapshot, into target: CopyTarget, written: @escaping (Int) throws -> Void
  ) {
    file = snapshot.file
    self.target = target
    pageByteCount = file.pageByteCount
    pagesLeft = snapshot.meta.lastPage &+ 1
    self.written = written
    buffer.reserveCapacity(Self.bufferByteCount + pageByteCount)
  }

  /// Copies everything that the snapshot reaches and writes the head last.
  mutating func run(_ meta: MetaRecord) throws {
    var copy = meta
    copy.main.root = try copyTree(meta.main, isMain: true)
    copy.freeList = meta.freeList
    copy.freeList.depth = 0
    copy.freeList.branchPageCount = 0
    copy.freeList.leafPageCount = 0
    copy.freeList.overflowPageCount = 0
    copy.freeList.entryCount = 0
    copy.freeList.root = PageLayout.noPage
    copy.lastPage = nextPage - 1
    let head = copy.encodedPages()
    try target.write(head, byteCount: head.count, at: 0)
    try flush()
  }

  /// - Returns: the root's new number.
  private mutating func copyTree(_ tree: TreeRecord, isMain: Bool) throws -> UInt64 {
    guard !tree.isEmpty else { return tree.root }
    guard tree.depth >= 1, tree.depth <= PageLayout.depthMax else {
      throw damaged(tree.root, "a tree of depth \(tree.depth)")
    }
    return try copyPage(tree.root, levelsLeft: Int(tree.depth))
  }

  private mutating func copyPage(_ number: UInt64, levelsLeft: Int) throws -> UInt64 {
    guard pagesLeft > 0 else { throw damaged(number, "the pages form a circle") }
    pagesLeft -= 1
    var page = PageBytes(count: pageByteCount)
    guard try file.read(number, into: &page) else { throw damaged(number, "behind the file's end") }
    guard page.pageNumber == number, page.hasGoodBounds else { throw damaged(number, "its header") }
    switch page.flags {
    case .branch where levelsLeft > 1:
      for index in 0..<page.nodeCount {
        guard let node = page.node(index, isBranch: true) else { throw damaged(number, "a node") }
        let child = try copyPage(node.child, levelsLeft: levelsLeft - 1)
        page.store(UInt16(truncatingIfNeeded: child), at: node.offset)
        page.store(UInt16(truncatingIfNeeded: child >> 16), at: node.offset + 2)
        page.store(UInt16(truncatingIfNeeded: child >> 32), at: node.offset + 4)
      }
      page.clear(page.lower..<page.upper)
    case .leaf where levelsLeft == 1:
      for index in 0..<page.nodeCount { try copyParts(of: index, in: &page) }
      page.clear(page.lower..<page.upper)
    case [.leaf, .fixedSizeLeaf] where levelsLeft == 1:
      let used = PageLayout.headerByteCount + page.nodeCount * page.fixedByteCount
      guard used <= page.count else { throw damaged(number, "its header") }
      page.clear(used..<page.count)
    default:
      throw damaged(number, "its kind")
    }
    return try append(page)
  }

  /// Copies what a leaf's node leads to, and leads it there.
  private mutating func copyParts(of index: Int, in page: inout PageBytes) throws {
    guard let node = page.node(index, isBranch: false) else {
      throw damaged(page.pageNumber, "a node")
    }
    if node.flags.contains(.overflow) {
      let copy = try copyRun(page.integer(at: node.data.lowerBound), node.valueByteCount)
      page.store(copy, at: node.data.lowerBound)
    } else if node.flags.contains(.subTree) {
      guard node.data.count == PageLayout.treeRecordByteCount,
        let tree = TreeRecord(page, at: node.data.lowerBound)
      else { throw damaged(page.pageNumber, "a tree record") }
      let root = try copyTree(tree, isMain: false)
      page.store(root, at: node.data.lowerBound + TreeRecord.rootOffset)
    }
  }

  /// - Returns: the first page's new number.
  private mutating func copyRun(_ number: UInt64, _ valueByteCount: Int) throws -> UInt64 {
    var page = PageBytes(count: pageByteCount)
    guard try file.read(number, into: &page), page.pageNumber == number, page.flags == .overflow
    else { throw damaged(number, "no overflow page") }
    let count = page.overflowPageCount
    let used = PageLayout.headerByteCount + valueByteCount
    guard count >= 1, count <= pagesLeft, used <= Int(count) * pageByteCount else {
      throw damaged(number, "a run of \(count) pages")
    }
    pagesLeft -= count
    let start = nextPage
    page.store(start, at: 0)
    for index in 0..<count {
      if index > 0 {
        guard try file.read(number + index, into: &page) else {
          throw damaged(number + index, "behind the file's end")
        }
      }
      // What lies behind the value is of no use to anybody.
      let usedHere = used - Int(index) * pageByteCount
      if usedHere < pageByteCount { page.clear(max(0, usedHere)..<pageByteCount) }
      try append(bytes: page)
    }
    return start
  }

  private mutating func append(_ page: consuming PageBytes) throws -> UInt64 {
    let number = nextPage
    page.store(number, at: 0)
    try append(bytes: page)
    return number
  }

  private mutating func append(bytes page: borrowing PageBytes) throws {
    buffer += page.bytes
    nextPage += 1
    if buffer.count >= Self.bufferByteCount { try flush() }
  }

  private mutating func flush() throws {
    let end = Int(nextPage) * pageByteCount
    try target.write(buffer, byteCount: buffer.count, at: Int64(end - buffer.count))
    buffer.removeAll(keepingCapacity: true)
    try written(end)
  }

  private func damaged(_ page: UInt64, _ what: String) -> LMDBError {
    LMDBError(.damaged, operation: "copy", path: file.directory, detail: "page \(page): \(what)")
  }
}

extension PageBytes {
  /// Fills a part of the page with zeros.
  mutating func clear(_ range: Range<Int>) {
    guard !range.isEmpty else { return }
    let part = (base + range.lowerBound)..<(base + range.upperBound)
    unsafe bytes.withUnsafeMutableBytes { buffer in
      // The slice checks that the part lies within the array.
      let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[part])
      _ = unsafe rest.initializeMemory(as: UInt8.self, repeating: 0)
    }
  }
}

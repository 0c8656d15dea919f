extension IntegrityWalk {
  func walkLeaf(
    _ page: borrowing PageBytes, _ number: UInt64, bounds: KeyBounds, _ tree: Tree,
    _ counts: inout Counts
  ) throws {
    let nodes = checkedNodes(page, isBranch: false, tree, at: number)
    for (index, node) in nodes.enumerated() {
      checkKey(
        page, node, after: index > 0 ? nodes[index - 1] : nil, bounds, tree, at: number)
      switch node.flags {
      case []:
        counts.entries += 1
        if tree.isFreeList { checkFreeEntry(page, number, node) }
      case .overflow where tree.duplicateOrder == nil && !tree.isDuplicates:
        counts.entries += 1
        try walkRun(page, number, node, tree, &counts)
      case .subTree where tree.isMain:
        counts.entries += 1
        try walkTable(page, number, node)
      case .duplicates where tree.duplicateOrder != nil:
        checkSubPage(page, number, node, tree, &counts)
      case [.duplicates, .subTree] where tree.duplicateOrder != nil:
        try walkDuplicates(page, number, node, tree, &counts)
      default:
        counts.entries += 1
        report(
          .wrongFlags, page: number, in: tree.table, "an entry with flags \(node.flags.rawValue)")
      }
    }
  }

  private func walkTable(
    _ page: borrowing PageBytes, _ number: UInt64, _ node: PageNode
  ) throws {
    let name = String(decoding: page.slice(node.key), as: UTF8.self)
    guard node.data.count == PageLayout.treeRecordByteCount,
      let record = TreeRecord(page, at: node.data.lowerBound)
    else {
      return report(.badBounds, page: number, in: name, "a record of \(node.data.count) bytes")
    }
    var table = Tree(table: name, keyOrder: KeyOrder.ofKeys(record.flags))
    if record.flags.contains(.duplicates) {
      table.duplicateOrder = KeyOrder.ofDuplicates(record.flags)
      if record.flags.contains(.fixedSizeDuplicates) {
        table.duplicatesHaveOneSize = true
      }
    }
    try walk(record, table)
  }

  /// The values of one key that have a tree of their own.
  private func walkDuplicates(
    _ page: borrowing PageBytes, _ number: UInt64, _ node: PageNode, _ tree: Tree,
    _ counts: inout Counts
  ) throws {
    guard node.data.count == PageLayout.treeRecordByteCount,
      let record = TreeRecord(page, at: node.data.lowerBound)
    else {
      return report(
        .badBounds, page: number, in: tree.table, "a record of \(node.data.count) bytes")
    }
    counts.entries &+= record.entryCount
    let below = try walk(record, tree.ofDuplicates(fixedByteCount: Int(record.fixedByteCount)))
    counts.duplicateBranchPages += below.branchPages
    counts.duplicateLeafPages += below.leafPages
  }

  /// The values of one key that stand in its leaf.
  private func checkSubPage(
    _ page: borrowing PageBytes, _ number: UInt64, _ node: PageNode, _ tree: Tree,
    _ counts: inout Counts
  ) {
    guard node.data.count >= PageLayout.headerByteCount else {
      return report(
        .badBounds, page: number, in: tree.table, "a sub-page of \(node.data.count) bytes")
    }
    var subPage = PageBytes(count: 0)
    subPage.bytes = Array(page.slice(node.data))
    subPage.count = node.data.count
    let isFixed = tree.duplicatesHaveOneSize
    let wanted: PageLayout.PageFlags =
      isFixed ? [.leaf, .subPage, .fixedSizeLeaf] : [.leaf, .subPage]
    // LMDB leaves the mark of a changed page on it.
    guard subPage.flags.subtracting(.dirty) == wanted else {
      return report(
        .wrongFlags, page: number, in: tree.table, "a sub-page with flags \(subPage.flags.rawValue)"
      )
    }
    let values = tree.ofDuplicates(fixedByteCount: subPage.fixedByteCount)
    if let size = values.fixedByteCount {
      return checkFixedKeys(subPage, number, size, KeyBounds(), values, &counts)
    }
    let nodes = checkedNodes(subPage, isBranch: false, values, at: number)
    for (index, node) in nodes.enumerated() {
      checkKey(
        subPage, node, after: index > 0 ? nodes[index - 1] : nil, KeyBounds(), values, at: number)
      if !node.flags.isEmpty || node.valueByteCount != 0 {
        report(.wrongFlags, page: number, in: tree.table, "a value of a value\(values.place)")
      }
    }
    counts.entries += UInt64(nodes.count)
  }

  /// A page that holds nothing but values of one size, one behind the other.
  func checkFixedKeys(
    _ page: borrowing PageBytes, _ number: UInt64, _ size: Int, _ bounds: KeyBounds, _ tree: Tree,
    _ counts: inout Counts
  ) {
    let isInteger = tree.keyOrder == .integers
    guard size > 0, size <= KeyBuffer.byteCountMax, page.fixedByteCount == size,
      !isInteger || size == 4 || size == 8
    else {
      return report(
        .keySize, page: number, in: tree.table,
        "\(page.fixedByteCount) bytes each, not \(size)\(tree.place)")
    }
    let count = page.nodeCount
    guard page.lower & 1 == 0, count > 0, page.fixedKey(count - 1, byteCount: size) != nil else {
      return report(
        .badBounds, page: number, in: tree.table, "\(count) values of \(size) bytes\(tree.place)")
    }
    counts.entries += UInt64(count)
    var previous: Range<Int>?
    for index in 0..<count {
      guard let key = page.fixedKey(index, byteCount: size) else { return }
      if let previous, !tree.keyOrder.isBefore(page.span(previous), page.span(key)) {
        report(
          .keyOrder, page: number, in: tree.table,
          "a value is not behind the one before\(tree.place)")
      } else if !bounds.contains(page.span(key), tree.keyOrder) {
        report(
          .keyOrder, page: number, in: tree.table,
          "a value is outside its parent's range\(tree.place)")
      }
      previous = key
    }
  }

  // MARK: - Overflow pages and the free list

  private func walkRun(
    _ page: borrowing PageBytes, _ number: UInt64, _ node: PageNode, _ tree: Tree,
    _ counts: inout Counts
  ) throws {
    let first: UInt64 = page.integer(at: node.data.lowerBound)
    guard claim(first, tree) else { return }
    var run = PageBytes(count: file.pageByteCount)
    guard try file.read(first, into: &run) else {
      return report(.pageBeyondEnd, page: first, in: tree.table, "the file ends before it")
    }
    if run.pageNumber != first {
      report(.wrongPageNumber, page: first, in: tree.table, "it bears \(run.pageNumber)")
    }
    guard run.flags == .overflow else {
      return report(.wrongFlags, page: first, in: tree.table, "flags \(run.flags.rawValue)")
    }
    let count = run.overflowPageCount
    counts.overflowPages += count
    let needed = (PageLayout.headerByteCount - 1 + node.valueByteCount) / file.pageByteCount + 1
    if count < needed {
      report(
        .overflowCut, page: first, in: tree.table, "\(count) page(s), the value needs \(needed)")
    }
    guard count >= 1, first + count <= marks.count else {
      return report(
        .overflowCut, page: first, in: tree.table, "\(count) page(s) pass the last page")
    }
    for next in (first + 1)..<(first + count) { _ = claim(next, tree) }
    try addToSum(first, pageCount: count)
    if try file.byteCount() < (first + count) * UInt64(file.pageByteCount) {
      report(.overflowCut, page: first, in: tree.table, "the file ends within its \(count) page(s)")
    } else if tree.isFreeList, count >= needed {
      var list = PageBytes(count: 0)
      list.count = node.valueByteCount
      let start = Int64(first) * Int64(file.pageByteCount) + Int64(PageLayout.headerByteCount)
      _ = try file.read(at: start, byteCount: list.count, into: &list.bytes)
      checkFreeList(list, 0..<list.count, first)
    }
  }

  private func checkFreeEntry(_ page: borrowing PageBytes, _ number: UInt64, _ node: PageNode) {
    checkFreeList(page, node.data, number)
  }

  /// One entry of the free list: how many pages, then their numbers, the greatest first.
  private func checkFreeList(
    _ bytes: borrowing PageBytes, _ range: Range<Int>, _ number: UInt64
  ) {
    let count: UInt64 = bytes.integer(at: range.lowerBound)
    // LMDB may leave a list of nothing behind, and reads it without harm.
    guard range.count % 8 == 0, count <= UInt64(range.count / 8 - 1) else {
      return report(
        .badFreeList, page: number, "\(count) pages in a list of \(range.count) bytes")
    }
    var previous = UInt64.max
    for index in 0..<Int(count) {
      let page: UInt64 = bytes.integer(at: range.lowerBound + 8 + 8 * index)
      if page >= previous { report(.badFreeList, page: number, "its numbers do not descend") }
      previous = page
      markFree(page, listedOn: number)
    }
  }

  private func markFree(_ page: UInt64, listedOn number: UInt64) {
    guard page >= PageLayout.metaPageCount, page < marks.count else {
      return report(.pageBeyondEnd, page: page, "listed as free on page \(number)")
    }
    if marks.isUsed(page) {
      report(.pageFreeAndUsed, page: page, "in use and in the free list")
    } else if marks.isFree(page) {
      report(.pageFreeTwice, page: page, "in the free list twice")
    }
    marks.markFree(page)
  }
}

extension IntegrityWalk.Tree {
  /// The tree of one key's values.
  func ofDuplicates(fixedByteCount: Int) -> IntegrityWalk.Tree {
    IntegrityWalk.Tree(
      table: table, keyOrder: duplicateOrder ?? .bytes, isDuplicates: true,
      fixedByteCount: duplicatesHaveOneSize ? fixedByteCount : nil)
  }
}

extension PageBytes {
  @_lifetime(borrow self)
  borrowing func span(_ range: Range<Int>) -> RawSpan {
    unsafe bytes.span.bytes.extracting((base + range.lowerBound)..<(base + range.upperBound))
  }
}

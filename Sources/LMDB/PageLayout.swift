/// The page format of LMDB 0.9 on a 64-bit little-endian machine: what this module reads from a data
/// file without the map.
///
/// Every accessor stays inside its bytes, whatever they hold: a damaged page yields numbers that are
/// wrong, never a trap. Corresponds to `MDB_page`, `MDB_node`, `MDB_db` and `MDB_meta`.
enum PageLayout {
  /// Where the nodes' offsets begin.
  static let headerByteCount = 16
  /// What stands before a node's key.
  static let nodeHeaderByteCount = 8
  static let treeRecordByteCount = 48
  /// The meta record within its page, up to and with the transaction number.
  static let metaByteCount = 136
  static let metaPageCount: UInt64 = 2
  /// The root of an empty tree.
  static let noPage = UInt64.max
  /// The deepest tree that LMDB can walk.
  static let depthMax = 32

  struct PageFlags: OptionSet, Sendable, Hashable {
    let rawValue: UInt16
    static let branch = PageFlags(rawValue: 0x01)
    static let leaf = PageFlags(rawValue: 0x02)
    static let overflow = PageFlags(rawValue: 0x04)
    static let meta = PageFlags(rawValue: 0x08)
    static let dirty = PageFlags(rawValue: 0x10)
    static let fixedSizeLeaf = PageFlags(rawValue: 0x20)
    static let subPage = PageFlags(rawValue: 0x40)
  }

  struct NodeFlags: OptionSet, Sendable, Hashable {
    let rawValue: UInt16
    static let overflow = NodeFlags(rawValue: 0x01)
    static let subTree = NodeFlags(rawValue: 0x02)
    static let duplicates = NodeFlags(rawValue: 0x04)
  }

  struct TableFlags: OptionSet, Sendable, Hashable {
    let rawValue: UInt16
    static let reverseKey = TableFlags(rawValue: 0x02)
    static let duplicates = TableFlags(rawValue: 0x04)
    static let integerKey = TableFlags(rawValue: 0x08)
    static let fixedSizeDuplicates = TableFlags(rawValue: 0x10)
    static let integerDuplicates = TableFlags(rawValue: 0x20)
    static let reverseDuplicates = TableFlags(rawValue: 0x40)
  }
}

/// The root and the counts of one tree. Corresponds to `MDB_db`.
struct TreeRecord: Equatable, Sendable {
  var fixedByteCount: UInt32
  var flags: PageLayout.TableFlags
  var depth: UInt16
  var branchPageCount: UInt64
  var leafPageCount: UInt64
  var overflowPageCount: UInt64
  var entryCount: UInt64
  var root: UInt64

  var isEmpty: Bool { root == PageLayout.noPage }

  /// - Returns: nil when `offset` leaves no room for a record.
  init?(_ bytes: borrowing PageBytes, at offset: Int) {
    guard offset >= 0, offset + PageLayout.treeRecordByteCount <= bytes.count else { return nil }
    fixedByteCount = bytes.integer(at: offset)
    flags = PageLayout.TableFlags(rawValue: bytes.integer(at: offset + 4))
    depth = bytes.integer(at: offset + 6)
    branchPageCount = bytes.integer(at: offset + 8)
    leafPageCount = bytes.integer(at: offset + 16)
    overflowPageCount = bytes.integer(at: offset + 24)
    entryCount = bytes.integer(at: offset + 32)
    root = bytes.integer(at: offset + 40)
  }

  static let rootOffset = 40

  /// Writes it where the other way round it was read.
  func encode(into bytes: inout PageBytes, at offset: Int) {
    bytes.store(fixedByteCount, at: offset)
    bytes.store(flags.rawValue, at: offset + 4)
    bytes.store(depth, at: offset + 6)
    bytes.store(branchPageCount, at: offset + 8)
    bytes.store(leafPageCount, at: offset + 16)
    bytes.store(overflowPageCount, at: offset + 24)
    bytes.store(entryCount, at: offset + 32)
    bytes.store(root, at: offset + Self.rootOffset)
  }
}

/// What one of the two meta pages says. Corresponds to `MDB_meta`.
struct MetaRecord: Equatable, Sendable {
  let pageByteCount: Int
  let mapByteCount: UInt64
  var freeList: TreeRecord
  var main: TreeRecord
  var lastPage: UInt64
  var transaction: UInt64

  /// - Returns: nil when the page is no meta page of this format.
  init?(_ page: borrowing PageBytes) {
    guard page.count >= PageLayout.headerByteCount + PageLayout.metaByteCount,
      page.flags.contains(.meta),
      page.integer(at: 16, as: UInt32.self) == MetaPages.magic,
      page.integer(at: 20, as: UInt32.self) == MetaPages.version,
      let freeList = TreeRecord(page, at: 40), let main = TreeRecord(page, at: 88)
    else { return nil }
    self.freeList = freeList
    self.main = main
    pageByteCount = Int(freeList.fixedByteCount)
    mapByteCount = page.integer(at: 32)
    lastPage = page.integer(at: 136)
    transaction = page.integer(at: 144)
    guard pageByteCount >= 512, pageByteCount <= 65_536, pageByteCount & (pageByteCount - 1) == 0
    else { return nil }
  }

  /// Both meta pages of a file that has this state and no older one.
  ///
  /// The state stands in both, so that a page torn by the next commit's crash leaves the other one.
  func encodedPages() -> [UInt8] {
    var bytes: [UInt8] = []
    for number in 0..<PageLayout.metaPageCount {
      var page = PageBytes(count: pageByteCount)
      page.store(number, at: 0)
      page.store(PageLayout.PageFlags.meta.rawValue, at: 10)
      page.store(MetaPages.magic, at: 16)
      page.store(MetaPages.version, at: 20)
      page.store(mapByteCount, at: 32)
      freeList.encode(into: &page, at: 40)
      main.encode(into: &page, at: 88)
      page.store(lastPage, at: 136)
      let isNewest = number == transaction & 1
      page.store(isNewest || transaction == 0 ? transaction : transaction - 1, at: 144)
      bytes += page.bytes
    }
    return bytes
  }
}

/// One entry of a leaf or branch page: where its parts stand within the page's bytes.
struct PageNode {
  let flags: PageLayout.NodeFlags
  let key: Range<Int>
  /// The data that stands in the page: the value, a page number, a tree record or a sub-page.
  let data: Range<Int>
  /// The value's length, also where it stands on overflow pages.
  let valueByteCount: Int
  /// The child of a branch page's node.
  let child: UInt64
  /// The node's header.
  let offset: Int
}

/// One thing that is wrong in a data file.
public struct IntegrityFinding: Sendable, Hashable, CustomStringConvertible {
  /// What is wrong. Open: a later version may add kinds, so a `switch` needs a `default`.
  public struct Kind: Hashable, Sendable, CustomStringConvertible {
    /// The kind's name as it is written in Swift.
    public let description: String

    private init(_ name: String) { description = name }

    /// A meta page cannot be read, or promises what the file cannot hold.
    public static let damagedHead = Kind("damagedHead")
    /// A page bears the number of another one: written to a wrong place, or not at all.
    public static let wrongPageNumber = Kind("wrongPageNumber")
    /// A page or an entry is not of the kind that its place asks for.
    public static let wrongFlags = Kind("wrongFlags")
    /// A page's entries do not lie within the page, or lie over one another.
    public static let badBounds = Kind("badBounds")
    /// A key is not behind the one before it, or outside of what its parent promises: a search may
    /// miss it.
    public static let keyOrder = Kind("keyOrder")
    /// A key or a value among duplicates is shorter or longer than it may be.
    public static let keySize = Kind("keySize")
    /// A leaf stands on another level than the tree's depth says.
    public static let wrongDepth = Kind("wrongDepth")
    /// A tree has other numbers of pages or entries than its record says.
    public static let countMismatch = Kind("countMismatch")
    /// Two places lead to one page.
    public static let pageUsedTwice = Kind("pageUsedTwice")
    /// A page in use is in the free list: the next write may overwrite it.
    public static let pageFreeAndUsed = Kind("pageFreeAndUsed")
    /// A page is in the free list twice: two later writes may get it both.
    public static let pageFreeTwice = Kind("pageFreeTwice")
    /// Something leads to a page behind the file's end, or to a meta page.
    public static let pageBeyondEnd = Kind("pageBeyondEnd")
    /// A page is neither in use nor free: lost space, no harm to the data. It is also what is left
    /// of a tree whose upper pages are damaged.
    public static let pageLeaked = Kind("pageLeaked")
    /// A value's run of pages is shorter than the value.
    public static let overflowCut = Kind("overflowCut")
    /// An entry of the free list does not have its form.
    public static let badFreeList = Kind("badFreeList")
  }

  /// What is wrong.
  public let kind: Kind
  /// The page where it was seen; nil where it concerns a whole tree.
  public let page: UInt64?
  /// The table; nil for what belongs to none: heads, the unnamed database, the free list.
  public let table: String?
  /// Numbers that belong to it, in words. Holds no key and no value.
  public let detail: String

  /// One line that names the kind, the page, the table and the numbers.
  public var description: String {
    var text = kind.description
    if let page { text += ", page \(page)" }
    if let table { text += ", table \(table)" }
    return text + ": " + detail
  }
}

/// What an integrity check has seen.
public struct IntegrityReport: Sendable {
  /// The commit whose state was checked; 0 when no meta page could be read.
  public let transaction: UInt64
  /// Pages up to the last one ever used.
  public let pageCount: Int
  /// Pages that some tree reaches, with the two meta pages.
  public let usedPageCount: Int
  /// Pages in the free list.
  public let freePageCount: Int
  /// Entries of all tables.
  public let entryCount: Int
  /// What is wrong, in the order in which it was seen; the first ``findingCountMax`` of them.
  public let findings: [IntegrityFinding]
  /// How many there are, also beyond ``findingCountMax``.
  public let findingCount: Int

  /// The most findings that are kept: a file of garbage must not fill the memory.
  public static let findingCountMax = 1_000

  /// Whether nothing is wrong.
  public var isIntact: Bool { findingCount == 0 }
}

/// How far an integrity check is.
public struct IntegrityProgress: Sendable, Hashable {
  /// Pages in use that were read so far.
  public let checkedPageCount: Int
  /// Pages up to the last one; those that are free are not read, so a check ends before.
  public let pageCount: Int
}

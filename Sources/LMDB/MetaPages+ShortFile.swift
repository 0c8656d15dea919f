extension MetaPages {
  /// Whether the file holds every page that is in use, though it ends before its last page.
  ///
  /// LMDB never writes a page that was taken and given up again within one transaction: when such
  /// pages are the last ones, a whole file is shorter than its head says. Each missing page is in the
  /// free list then.
  static func isRestFree(directory: String) throws(LMDBError) -> Bool {
    let file = try PageFile(directory: directory)
    // Another process may commit meanwhile: then the free list is read again.
    for _ in 0..<10 {
      guard let meta = file.newestMeta else { return false }
      let isFree: Bool
      do {
        isFree = try Self.isRestFree(of: meta, in: file)
      } catch {
        guard error.code == .damaged else { throw error }
        isFree = false
      }
      try file.readMetaPages()
      if isFree { return true }
      if file.newestMeta == meta { return false }
    }
    return false
  }

  private static func isRestFree(of meta: MetaRecord, in file: PageFile) throws(LMDBError) -> Bool {
    let byteCount = try file.byteCount()
    let firstMissing = byteCount / UInt64(file.pageByteCount)
    guard meta.lastPage >= firstMissing else { return true }
    // The list stands in the file, eight bytes a page: a head that promises more is damaged.
    let missingCount = meta.lastPage - firstMissing + 1
    guard missingCount <= byteCount / 8 else { return false }
    var isListed = [Bool](repeating: false, count: Int(missingCount))
    var listedCount: UInt64 = 0
    var reader = TreeReader(file: file, meta: meta)
    try reader.forEachFreePage(of: meta) { number in
      guard number >= firstMissing, number <= meta.lastPage else { return }
      let index = Int(number - firstMissing)
      if !isListed[index] { listedCount += 1 }
      isListed[index] = true
    }
    return listedCount == missingCount
  }
}

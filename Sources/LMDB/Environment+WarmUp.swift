internal import CLMDB
import Foundation

extension Environment {
  /// Reads what the file holds into memory and maps it, ahead of a scan or many random reads.
  ///
  /// A file that was not read lately costs a page fault, and a wait for the disk, at each of its parts
  /// that is touched first. Asking for all of it at once takes three quarters of the time of a first
  /// scan, and half of that of 20,000 first random reads. Blocks the calling thread for as long as
  /// the disk needs: about 10 ms for 15 MB. What does not fit into memory is not kept.
  /// - Returns: how many bytes were asked for.
  /// - Throws: as ``read(_:)``; that memory is short is no error.
  /// - Corresponds to `MADV_POPULATE_READ`, where the system lacks it to `MADV_WILLNEED`.
  @discardableResult
  public func warmUp() throws -> Int {
    let byteCount = try statistics().usedByteCount
    return try read { transaction in
      guard let start = unsafe try mapStart(transaction) else { return 0 }
      unsafe Self.populate(UnsafeRawBufferPointer(start: start, count: byteCount))
      return byteCount
    }
  }

  /// Has the system read a part of the map into memory and map it; only a hint, which fails silently.
  /// - Parameter stride: one page of so many bytes is asked for. With ``faultAroundByteCount`` the kernel maps
  ///   the others beside it, in half the time that asking for each takes.
  @unsafe static func populate(_ memory: UnsafeRawBufferPointer, stride: Int? = nil) {
    #if canImport(Darwin)
      let advice = MADV_WILLNEED
    #else
      let advice: Int32 = 22  // MADV_POPULATE_READ, Linux 5.14
    #endif
    // SAFETY: no advice here changes what lies there, and an address that is no longer mapped is an
    // error of the call.
    let pageByteCount = UInt(getpagesize())
    let start = UInt(bitPattern: memory.baseAddress)
    let end = start + UInt(memory.count)
    let step = stride.map { UInt($0) } ?? max(end - start, 1)
    var next = start & ~(pageByteCount - 1)
    while next < end {
      let count = stride == nil ? Int(end - next) : Int(pageByteCount)
      if unsafe madvise(UnsafeMutableRawPointer(bitPattern: next), count, advice) != 0 {
        guard errno == EINVAL else { return }
        unsafe madvise(
          UnsafeMutableRawPointer(bitPattern: next), Int(end - next), MADV_WILLNEED)
        return
      }
      next = stride == nil ? end : (next / step + 1) * step
    }
  }

  /// How much Linux maps at a page fault, aligned, where it is in memory already: 16 pages.
  static var faultAroundByteCount: Int { 16 * Int(getpagesize()) }

  /// Where the map begins; nil while there is no table.
  ///
  /// LMDB tells it only of fixed maps, but each page begins with its own number.
  @unsafe private func mapStart(
    _ transaction: borrowing ReadTransaction
  ) throws -> UnsafeMutableRawPointer? {
    var start: UnsafeMutableRawPointer?
    var numbers = MDB_stat()
    unsafe try check(mdb_env_stat(handle, &numbers), "mdb_env_stat")
    let pageByteCount = UInt(numbers.ms_psize)
    try transaction.scan(try mainTable(), limit: 1) { key, _ in
      unsafe key.withUnsafeBytes { key in
        // SAFETY: in a read transaction the key lies in a page of the map, which begins with the
        // page's number (64 bits) and is aligned to its size.
        let page = UInt(bitPattern: key.baseAddress) & ~(pageByteCount - 1)
        guard let head = unsafe UnsafePointer<UInt>(bitPattern: page) else { return }
        unsafe start = UnsafeMutableRawPointer(bitPattern: page - head.pointee * pageByteCount)
      }
      return .stop
    }
    return unsafe start
  }
}

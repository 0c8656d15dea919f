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
      #if canImport(Darwin)
        let advice = MADV_WILLNEED
      #else
        let advice: Int32 = 22  // MADV_POPULATE_READ, Linux 5.14
      #endif
      if unsafe madvise(start, byteCount, advice) != 0, errno == EINVAL {
        unsafe madvise(start, byteCount, MADV_WILLNEED)
      }
      return byteCount
    }
  }

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

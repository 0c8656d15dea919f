import Foundation

/// A data file read page by page through a descriptor of its own.
///
/// Never through the map: a file that was cut short is an answer here, not a SIGBUS. Closing the
/// descriptor harms no lock: LMDB's locks live in `lock.mdb`, which is never opened here.
final class PageFile {
  let descriptor: Int32
  let directory: String
  private(set) var pageByteCount = Int(getpagesize())
  /// Both meta pages as they were at the last ``readMetaPages()``; nil where one is unreadable.
  private(set) var metaPages: [MetaRecord?] = [nil, nil]

  /// Opens the data file of an environment's directory for reading.
  /// - Throws: `missing`, `noPermission`, `outOfResources`.
  init(directory: String) throws(LMDBError) {
    self.directory = directory
    descriptor = unsafe open(directory + "/data.mdb", O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else {
      throw LMDBError.from(errno, operation: "open", path: directory)
    }
    try readMetaPages()
  }

  deinit { close(descriptor) }

  /// The file's length now, in bytes.
  func byteCount() throws(LMDBError) -> UInt64 {
    guard let numbers = FileNumbers(descriptor: descriptor) else {
      throw LMDBError.from(errno, operation: "fstat", path: directory)
    }
    return UInt64(numbers.byteCount)
  }

  /// Reads both meta pages again, and the size of a page with them.
  func readMetaPages() throws(LMDBError) {
    var page = PageBytes(count: pageByteCount)
    metaPages[0] = try read(0, into: &page) ? MetaRecord(page) : nil
    if let first = metaPages[0] { pageByteCount = first.pageByteCount }
    if page.count != pageByteCount { page = PageBytes(count: pageByteCount) }
    metaPages[1] = try read(1, into: &page) ? MetaRecord(page) : nil
    if let second = metaPages[1], second.pageByteCount != pageByteCount { metaPages[1] = nil }
  }

  /// The meta page of the last commit, or nil when neither can be read.
  var newestMeta: MetaRecord? {
    guard let first = metaPages[0] else { return metaPages[1] }
    guard let second = metaPages[1] else { return first }
    return first.transaction >= second.transaction ? first : second
  }

  /// Reads one page.
  /// - Returns: false when the file ends before the page does.
  func read(_ number: UInt64, into page: inout PageBytes) throws(LMDBError) -> Bool {
    guard number <= UInt64(Int64.max) / UInt64(pageByteCount) - 1 else { return false }
    page.base = 0
    page.count = pageByteCount
    let wanted = pageByteCount
    let count = try read(
      at: Int64(number) * Int64(wanted), byteCount: wanted, into: &page.bytes)
    return count == wanted
  }

  /// Reads up to that many bytes.
  /// - Returns: how many there were before the file's end.
  func read(
    at offset: Int64, byteCount: Int, into bytes: inout [UInt8]
  ) throws(LMDBError) -> Int {
    if bytes.count < byteCount { bytes = [UInt8](repeating: 0, count: byteCount) }
    var done = 0
    while done < byteCount {
      let count = unsafe bytes.withUnsafeMutableBytes { buffer in
        let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[done..<byteCount])
        return unsafe pread(descriptor, rest.baseAddress, rest.count, off_t(offset + Int64(done)))
      }
      if count < 0 {
        if errno == EINTR { continue }
        throw LMDBError.from(errno, operation: "pread", path: directory)
      }
      if count == 0 { break }
      done += count
    }
    return done
  }
}

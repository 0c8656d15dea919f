internal import CLMDB
import Foundation

/// Room kept ready in the data file behind its last used page; used with the turn to write.
///
/// It is written, with zeros: LMDB then overwrites blocks that have their place on the disk. That
/// makes a small durable commit about twice as fast as one that lengthens the file (80 µs instead
/// of 180 on ext4, since the file system has nothing of its own to flush), and it is the room in which
/// a draining write succeeds on a full disk.
struct FileReserve {
  /// The file has its place on the disk up to here; nil before it was asked.
  var end: Int?
  /// How much was used at the last write's beginning; nil before the first.
  var usedByteCount: Int?

  /// The disk has set room aside for the file up to here, written or not.
  var allocatedEnd = 0

  /// A write that adds more than this is one of a load: it would overwrite the zeros at once. Its
  /// reserve is set aside on the disk only, and written by the small writes that follow.
  static let loadByteCount = 64 << 10

  static let byteCountMin = 128 << 10

  /// How much is kept behind so many used bytes, at least. Twice that is made at once.
  static func byteCount(used: Int, maximum: Int) -> Int {
    min(max(used / 4, byteCountMin), maximum)
  }
}

extension Environment {
  /// Makes room behind the data when there is too little. Within a write transaction: what lies
  /// behind the last used page belongs to nobody else then.
  /// - Throws: `diskFull` for a storing write, so that what is left is left to draining ones.
  func keepFileReserve(_ purpose: WritePurpose) throws(LMDBError) {
    guard reservesFile else { return }
    let used = numbers().usedByteCount
    let wanted = FileReserve.byteCount(
      used: used, maximum: configuration.fileReserveByteCountMax)
    let growth = used - (fileReserve.usedByteCount ?? used)
    fileReserve.usedByteCount = used
    var descriptor: Int32 = -1
    if let end = fileReserve.end, end - used >= wanted { return }
    guard unsafe mdb_env_get_fd(handle, &descriptor) == 0 else { return }
    // Another process may have lengthened it; nobody cuts it.
    guard let byteCount = FileNumbers(descriptor: descriptor)?.byteCount else { return }
    fileReserve.end = byteCount
    guard byteCount - used < wanted else { return }
    if purpose == .storing, growth > FileReserve.loadByteCount,
      isSetAside(descriptor, used: used, wanted: wanted)
    {
      return
    }
    let result = Self.fill(descriptor, from: max(used, byteCount), to: used + 2 * wanted)
    fileReserve.end = max(result.end, byteCount)
    guard result.error != 0, purpose == .storing, result.end - used < wanted else { return }
    throw LMDBError.from(
      result.error, operation: "pwrite", path: path,
      detail: "\(max(result.end, byteCount) - used) bytes are left for draining writes")
  }

  /// - Returns: false where the system or the file system cannot, or has no room.
  private func isSetAside(_ descriptor: Int32, used: Int, wanted: Int) -> Bool {
    #if os(Linux)
      if fileReserve.allocatedEnd - used >= wanted { return true }
      let end = used + 2 * wanted
      guard clmdb_reserve(descriptor, Int64(end)) == 0 else { return false }
      fileReserve.allocatedEnd = end
      return true
    #else
      return false
    #endif
  }

  private var reservesFile: Bool {
    configuration.fileReserveByteCountMax > 0 && configuration.durability != .unsafeWithoutSync
  }

  /// - Returns: how far it came, and the `errno` that stopped it, or 0.
  private static func fill(
    _ descriptor: Int32, from start: Int, to end: Int
  ) -> (end: Int, error: Int32) {
    var offset = start
    while offset < end {
      let count = unsafe pwrite(
        descriptor, zeros.baseAddress, min(end - offset, zeros.count), off_t(offset))
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { return (offset, count < 0 ? errno : ENOSPC) }
      offset += count
    }
    return (offset, 0)
  }

  // SAFETY: never written.
  nonisolated(unsafe) private static let zeros = unsafe UnsafeRawBufferPointer(
    UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 4_096).zeroed)
}

extension UnsafeMutableRawBufferPointer {
  fileprivate var zeroed: UnsafeMutableRawBufferPointer {
    _ = unsafe initializeMemory(as: UInt8.self, repeating: 0)
    return unsafe self
  }
}

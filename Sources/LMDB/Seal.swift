import Foundation

/// What a data file held when it was last closed: a sum over everything that its last commit reaches.
///
/// Kept in `data.seal` beside the file: emptied by the first commit, filled when it is closed. A
/// file that says the same commit and has another sum was changed by nobody who asked: by its medium,
/// or by hand. LMDB stores no sums, so that nothing else would tell. A process that is killed leaves
/// none.
///
/// ```
/// magic (8) | device (8) | inode (8) | transaction (8) | sum (8) | meta page (8 each) | sum of what stands
/// before (8)
/// ```
struct Seal: Equatable {
  private static let magic: UInt64 = 0x3230_4C41_4553_4648
  /// Of the meta page.
  static let headWordCount = (PageLayout.headerByteCount + PageLayout.metaByteCount) / 8
  private static let wordCount = 6 + headWordCount

  /// Of the data file: a copy that was put in its place is another one.
  var file: EnvironmentRegistry.FileID
  var transaction: UInt64
  var sum: UInt64
  /// What the newest meta page says.
  var head: [UInt64]

  static func path(in directory: String) -> String { directory + "/data.seal" }

  init(file: EnvironmentRegistry.FileID, transaction: UInt64, sum: UInt64, head: [UInt64]) {
    self.file = file
    self.transaction = transaction
    self.sum = sum
    self.head = head
  }

  /// Whether it speaks of a file with this meta page.
  ///
  /// A copy that was put in the file's place may have its number and its last commit's, and other pages
  /// (a compacted one): its meta page differs in many words. In one word only a meta page differs that was
  /// harmed itself.
  func speaks(of file: EnvironmentRegistry.FileID, _ transaction: UInt64, _ head: [UInt64]) -> Bool
  {
    guard self.file == file, self.transaction == transaction, self.head.count == head.count else {
      return false
    }
    return zip(self.head, head).count { $0 != $1 } <= 1
  }

  /// Reads the one in a directory.
  /// - Returns: nil when there is none, or it is not whole: then it says nothing.
  init?(in directory: String) {
    let descriptor = unsafe open(Self.path(in: directory), O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var words = [UInt64](repeating: 0, count: Self.wordCount)
    let count = unsafe words.withUnsafeMutableBytes { buffer in
      unsafe pread(descriptor, buffer.baseAddress, buffer.count, 0)
    }
    guard count == Self.wordCount * 8, words[0] == Self.magic,
      words[Self.wordCount - 1] == Self.sum(of: words)
    else { return nil }
    self.init(
      file: EnvironmentRegistry.FileID(device: words[1], inode: words[2]), transaction: words[3],
      sum: words[4], head: Array(words[5..<Self.wordCount - 1]))
  }

  /// Writes it, if that can be done: without it nothing is lost but a check. It is not flushed: torn,
  /// it counts as none.
  func write(in directory: String) {
    guard head.count == Self.headWordCount else { return }
    var words = [Self.magic, file.device, file.inode, transaction, sum] + head + [0]
    words[Self.wordCount - 1] = Self.sum(of: words)
    // It is there since the first commit. None is made here: whoever removes the directory of a file that
    // is just being closed would find a new one in it.
    let descriptor = unsafe open(Self.path(in: directory), O_WRONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return }
    defer { close(descriptor) }
    let count = unsafe words.withUnsafeBytes { buffer in
      unsafe pwrite(descriptor, buffer.baseAddress, buffer.count, 0)
    }
    // A part of it would be taken for none, too; an old one must not stay behind a new one.
    if count != Self.wordCount * 8 { _ = ftruncate(descriptor, 0) }
  }

  /// Makes an empty one, which says nothing, or empties the one that is there.
  static func empty(in directory: String) {
    let descriptor = unsafe open(
      path(in: directory), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    if descriptor >= 0 { close(descriptor) }
  }

  private static func sum(of words: [UInt64]) -> UInt64 {
    var sum = PageSum()
    for word in words.dropLast() { sum.add(word) }
    return sum.value
  }
}

/// A sum over bytes that any one changed bit changes: each step is a bijection of what was summed
/// before. It finds accidents, not forgeries.
struct PageSum {
  private(set) var value: UInt64 = 0x9E37_79B9_7F4A_7C15

  mutating func add(_ word: UInt64) {
    value = (value ^ word) &* 0xFF51_AFD7_ED55_8CCD
    value ^= value >> 32
  }

  /// Adds the first bytes of an array, as many as a multiple of eight.
  mutating func add(_ bytes: [UInt8], count: Int) {
    // SAFETY: the buffer lives through the closure, and the loop stays inside of it.
    unsafe bytes.withUnsafeBytes { buffer in
      var offset = 0
      let end = min(count, buffer.count) & ~7
      while offset < end {
        unsafe add(buffer.loadUnaligned(fromByteOffset: offset, as: UInt64.self).littleEndian)
        offset += 8
      }
    }
  }
}

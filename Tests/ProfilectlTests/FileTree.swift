import Foundation

/// What lies below a directory: two are equal if nothing was made, removed or changed.
struct FileTree: Equatable {
  struct Item: Equatable {
    var mode: UInt32
    var byteCount: Int
    var modified: [Int]
    var content: Data?
  }

  var items: [String: Item] = [:]

  init(_ directory: URL) throws {
    guard let names = FileManager.default.enumerator(atPath: directory.path) else { return }
    for case let name as String in names {
      var numbers = stat()
      guard lstat(directory.path + "/" + name, &numbers) == 0 else {
        throw CocoaError(.fileReadUnknown)
      }
      let isFile = numbers.st_mode & S_IFMT == S_IFREG
      // A reader notes itself in the lock file; and to read it here would drop its locks.
      let isLock = name.hasSuffix("lock.mdb")
      items[name] = Item(
        mode: UInt32(numbers.st_mode), byteCount: isFile ? Int(numbers.st_size) : 0,
        modified: isLock ? [] : [numbers.st_mtim.tv_sec, numbers.st_mtim.tv_nsec],
        content: isFile && !isLock ? try Data(contentsOf: directory.appending(path: name)) : nil)
    }
  }

  /// The paths of all files below a directory, sorted.
  static func names(in directory: URL) throws -> [String] {
    try FileTree(directory).items.filter { $0.value.mode & UInt32(S_IFMT) == UInt32(S_IFREG) }
      .keys.sorted()
  }
}

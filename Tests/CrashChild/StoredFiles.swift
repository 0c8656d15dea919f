import Foundation

/// The data files of a store that nobody has open, as they are when they are whole. They are changed
/// and restored in place, so that they stay the files that they are.
struct StoredFiles {
  /// A change of one file.
  enum Change: CustomStringConvertible {
    /// One bit is another.
    case flip(file: Int, offset: Int, bit: Int)
    /// The file ends here.
    case cut(file: Int, byteCount: Int)

    var description: String {
      switch self {
      case .flip(let file, let offset, let bit):
        "flip of file \(file), page \(offset / 4_096), byte \(offset % 4_096), bit \(bit)"
      case .cut(let file, let byteCount): "file \(file) cut to \(byteCount) bytes"
      }
    }
  }

  private let directory: URL
  /// By path below the directory; the data files first.
  private let files: [(path: String, bytes: [UInt8])]
  private var dataFileCount: Int { files.count { $0.path.hasSuffix("data.mdb") } }

  /// - Parameter copy: where the first to come keeps what is whole; whoever comes later, because that one
  ///   has died of a change, takes it from there.
  init(_ directory: URL, copy: URL) throws {
    self.directory = directory
    let isFirst = !FileManager.default.fileExists(atPath: copy.path)
    if isFirst { try FileManager.default.copyItem(at: directory, to: copy) }
    let names = try FileManager.default.subpathsOfDirectory(atPath: copy.path).sorted()
    files = try ["data.mdb", "data.seal"].flatMap { name in
      try names.filter { $0.hasSuffix(name) }.map { path in
        (path, Array(try Data(contentsOf: copy.appending(path: path))))
      }
    }
    if !isFirst { try restore() }
  }

  /// One bit at several places of each page that is in use, and of the first behind them.
  func flips(seed: UInt64) -> [Change] {
    var random = Random(state: seed)
    var places: [Change] = []
    for file in 0..<dataFileCount {
      for page in 0...min(usedPageCount(file), files[file].bytes.count / 4_096 - 1) {
        // Twice in the page's head, three times in what leads to its entries, else anywhere.
        for range in [16, 16, 64, 64, 152] + [Int](repeating: 4_096, count: 7) {
          places.append(
            .flip(
              file: file, offset: page * 4_096 + Int(random.next() % UInt64(range)),
              bit: Int(random.next() % 8)))
        }
      }
    }
    return places
  }

  /// Each file cut at each page in use, and a byte beside it.
  func cuts() -> [Change] {
    (0..<dataFileCount).flatMap { file in
      (0...usedPageCount(file)).flatMap { page in
        [-1, 0, 1].map { page * 4_096 + $0 }.filter { $0 >= 0 }.map {
          .cut(file: file, byteCount: $0)
        }
      }
    }
  }

  func change(_ change: Change) throws {
    switch change {
    case .flip(let file, let offset, let bit):
      var bytes = files[file].bytes
      bytes[offset] ^= 1 << UInt8(bit)
      try write(bytes, to: files[file].path)
    case .cut(let file, let byteCount):
      try write(Array(files[file].bytes.prefix(byteCount)), to: files[file].path)
    }
  }

  func removeSeals() throws {
    for file in files where file.path.hasSuffix("data.seal") {
      unlink(directory.appending(path: file.path).path)
    }
  }

  /// Every file as it was, and no other area.
  func restore() throws {
    for file in files { try write(file.bytes, to: file.path) }
    let areas = Set(files.map { $0.path.split(separator: "/").dropLast().joined(separator: "/") })
    for name in try FileManager.default.subpathsOfDirectory(atPath: directory.path + "/areas") {
      let path = "areas/" + name
      guard name.split(separator: "/").count == 2, !areas.contains(path) else { continue }
      try FileManager.default.removeItem(at: directory.appending(path: path))
    }
  }

  private func write(_ bytes: [UInt8], to path: String) throws {
    let descriptor = open(
      directory.appending(path: path).path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw Child.BadWords() }
    defer { close(descriptor) }
    guard pwrite(descriptor, bytes, bytes.count, 0) == bytes.count,
      ftruncate(descriptor, off_t(bytes.count)) == 0
    else { throw Child.BadWords() }
  }

  /// Pages up to the last one, by the newer meta page.
  private func usedPageCount(_ file: Int) -> Int {
    func word(_ offset: Int) -> UInt64 {
      files[file].bytes[offset..<offset + 8].reversed().reduce(0) { $0 << 8 | UInt64($1) }
    }
    let newest = word(144) >= word(4_096 + 144) ? 0 : 4_096
    return Int(word(newest + 136)) + 1
  }

  /// SplitMix64.
  private struct Random {
    var state: UInt64

    mutating func next() -> UInt64 {
      state &+= 0x9E37_79B9_7F4A_7C15
      var z = state
      z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
      z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
      return z ^ (z >> 31)
    }
  }
}

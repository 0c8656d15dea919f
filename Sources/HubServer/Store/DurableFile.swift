import Foundation

/// Small files that must be on the disk before something else happens.
enum DurableFile {
  /// Replaces a file whole: after a crash it has the old bytes or the new ones.
  static func replace(_ file: URL, with bytes: Data) throws(HubServerError) {
    let temporary = file.appendingPathExtension("new")
    let descriptor = try descriptor(of: temporary, O_WRONLY | O_CREAT | O_TRUNC)
    do {
      defer { close(descriptor) }
      try store(bytes, in: descriptor, of: temporary)
    }
    guard rename(temporary.path, file.path) == 0 else { throw failure("renamed to", file) }
    try syncDirectory(of: file)
  }

  /// Adds bytes at the end of a file; they are on the disk when it returns.
  static func append(_ bytes: Data, to file: URL) throws(HubServerError) {
    let isNew = access(file.path, F_OK) != 0
    let descriptor = try descriptor(of: file, O_WRONLY | O_CREAT | O_APPEND)
    do {
      defer { close(descriptor) }
      try store(bytes, in: descriptor, of: file)
    }
    if isNew { try syncDirectory(of: file) }
  }

  /// The bytes of a file, or nil if there is none.
  static func read(_ file: URL) throws(HubServerError) -> Data? {
    guard access(file.path, F_OK) == 0 else { return nil }
    do { return try Data(contentsOf: file) } catch {
      throw HubServerError(
        .directoryUnusable, "\(file.path) cannot be read; check its rights", cause: error)
    }
  }

  private static func descriptor(of file: URL, _ flags: Int32) throws(HubServerError) -> Int32 {
    let descriptor = open(file.path, flags | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw failure("opened", file) }
    return descriptor
  }

  private static func store(
    _ bytes: Data, in descriptor: Int32, of file: URL
  ) throws(HubServerError) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
      guard count > 0 else {
        if count < 0, errno == EINTR { continue }
        throw failure("written", file)
      }
      rest = rest.dropFirst(count)
    }
    guard fsync(descriptor) == 0 else { throw failure("synced", file) }
  }

  private static func syncDirectory(of file: URL) throws(HubServerError) {
    let directory = file.deletingLastPathComponent()
    let descriptor = open(directory.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { throw failure("opened", directory) }
    defer { close(descriptor) }
    guard fsync(descriptor) == 0 else { throw failure("synced", directory) }
  }

  private static func failure(_ what: String, _ file: URL) -> HubServerError {
    let reason = String(cString: strerror(errno))
    return HubServerError(
      .directoryUnusable, "\(file.path) cannot be \(what): \(reason); check space and rights")
  }
}

import Foundation

/// A place in the line for the passes of one area, over all processes: a numbered file that its
/// holder has locked. The lowest live one may run.
///
/// A process that dies lets go of its lock, and the next one to look removes its file. Numbers are
/// given under a lock of their own, so that they grow in the order of asking.
final class PassTicket: Sendable {
  let number: UInt64
  private let directory: String
  private let lock: FileLock

  private init(number: UInt64, directory: String, lock: FileLock) {
    self.number = number
    self.directory = directory
    self.lock = lock
  }

  /// Draws the next number.
  /// - Returns: nil when another process is drawing one at this very moment.
  /// - Throws: `storage`.
  static func draw(in directory: String) throws(StoreError) -> PassTicket? {
    try Files.makeDirectory(directory)
    guard let gate = try FileLock.ifFree(directory + "/gate") else { return nil }
    return try withExtendedLifetime(gate) { () throws(StoreError) in
      let number = (try numbers(in: directory).max() ?? 0) + 1
      guard let lock = try FileLock.ifFree(file(number, directory)) else {
        throw StoreError(.storage, "a new ticket of the passes is locked by somebody")
      }
      return PassTicket(number: number, directory: directory, lock: lock)
    }
  }

  /// Whether nobody alive stands before it.
  /// - Throws: `storage`.
  func isFirst() throws(StoreError) -> Bool {
    for earlier in try Self.numbers(in: directory).sorted() where earlier < number {
      let file = Self.file(earlier, directory)
      // Its holder has died, or has just gone: nobody else can have this number while a later one
      // stands.
      guard let abandoned = try FileLock.ifFree(file) else { return false }
      withExtendedLifetime(abandoned) { Self.remove(file) }
    }
    return true
  }

  /// Leaves the line.
  func end() { Self.remove(Self.file(number, directory)) }

  /// No line of passes comes as far: a file with a higher number is none of its tickets.
  private static let numberMax: UInt64 = 1 << 53

  private static func file(_ number: UInt64, _ directory: String) -> String {
    "\(directory)/\(number).ticket"
  }

  /// A file that is gone already, or goes with its directory, is no loss: what counts is the lock.
  private static func remove(_ file: String) { unlink(file) }

  private static func numbers(in directory: String) throws(StoreError) -> [UInt64] {
    do {
      return try FileManager.default.contentsOfDirectory(atPath: directory).compactMap { name in
        name.hasSuffix(".ticket") ? UInt64(name.dropLast(7)) : nil
      }.filter { $0 <= numberMax }
    } catch {
      throw StoreError(.storage, "the line of passes cannot be read: \(error.localizedDescription)")
    }
  }
}

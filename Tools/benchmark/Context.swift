import CBench
import Foundation
import Measuring
import Synchronization
import ToolSupport

/// What the workloads share: the records, and a place on disk.
final class Context: Sendable {
  static let page = 500
  static let mapByteCount = 1 << 30

  let documents: Documents
  /// The same keys with other values, whose words have the same XOR.
  let swapped: Documents
  /// Keys that are text, for records that have to have an ID.
  let names: RecordNames
  let inOrder: [UInt32]
  let shuffled: [UInt32]
  /// The XOR over all values.
  let digest: UInt64
  let directory: URL
  private let count = Mutex(0)

  /// - Parameter directory: made here, and removed by ``removeAll()``.
  init(records: Int, directory: URL) throws {
    documents = Documents(count: records)
    swapped = Documents(count: records, isSwapped: true)
    names = RecordNames(count: records)
    inOrder = Array(0..<UInt32(records))
    var random = SplitMix64(seed: Documents.seed + 1)
    shuffled = random.permutation(of: records)
    digest = (0..<records).reduce(0) { [documents] digest, index in
      let value = documents.value(index)
      return digest ^ cbench_touch(value.baseAddress, value.count)
    }
    self.directory = directory
    do {
      try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    } catch {
      throw ToolFailure(
        .cannotCreate, "the directory \(directory.path(percentEncoded: false)) can't be made")
    }
  }

  /// A directory that nothing is in.
  func freshDirectory() throws -> String {
    let number = count.withLock { count in
      count += 1
      return count
    }
    let made = directory.appending(path: String(number), directoryHint: .isDirectory)
    try FileManager.default.createDirectory(at: made, withIntermediateDirectories: false)
    return made.path(percentEncoded: false)
  }

  func remove(_ path: String) throws { try FileManager.default.removeItem(atPath: path) }

  func removeAll() throws { try FileManager.default.removeItem(at: directory) }

  /// Lends the records to C.
  /// - Parameters:
  ///   - names: keys in place of the records' own.
  ///   - count: how many of them; all by default.
  static func withRecords<R>(
    _ documents: Documents, named names: RecordNames? = nil, count: Int? = nil,
    _ body: (UnsafePointer<cbench_records>) throws -> R
  ) rethrows -> R {
    let keys = UnsafeRawPointer(documents.keys.baseAddress)?.assumingMemoryBound(to: UInt8.self)
    var records = cbench_records(
      keys: names.map { $0.bytes.baseAddress } ?? keys,
      values: documents.values.baseAddress?.assumingMemoryBound(to: UInt8.self),
      offsets: documents.offsets.baseAddress,
      frames: documents.frames.baseAddress?.assumingMemoryBound(to: UInt8.self),
      count: count ?? documents.count)
    return try body(&records)
  }

  /// The XOR over the values of some records.
  func digest(of indexes: some Sequence<UInt32>) -> UInt64 {
    indexes.reduce(0) { digest, index in
      let value = documents.value(Int(index))
      return digest ^ cbench_touch(value.baseAddress, value.count)
    }
  }
}

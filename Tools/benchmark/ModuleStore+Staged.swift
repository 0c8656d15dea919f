import CBench
import Foundation
import LMDB
import Measuring

/// Pages of records, each one value of packed records.
struct StagedModuleStore {
  private let environment: LMDB.Environment
  private let table: Table<UInt64Codec, PackedRecordsCodec>

  init(_ directory: String) throws {
    environment = try LMDB.Environment.open(
      at: directory, configuration: ModuleStore.configuration)
    table = try environment.table(
      "records", key: UInt64Codec.self, value: PackedRecordsCodec.self)
  }

  func close() throws { try environment.close() }

  func stage(_ documents: Documents) throws -> Pass {
    var pass = Pass()
    let start = cbench_now()
    for begin in stride(from: 0, to: documents.count, by: Context.page) {
      let end = min(begin + Context.page, documents.count)
      let byteCount =
        Int(documents.offsets[end] - documents.offsets[begin]) + 16 * (end - begin)
      try environment.write { transaction in
        try transaction.put(
          recordCount: end - begin, contentByteCount: byteCount, for: UInt64(begin / Context.page),
          in: table
        ) { packer in
          for index in begin..<end { packer.append(documents.frame(index).bytes) }
        }
      }
      pass.operations += end - begin
      pass.commits += 1
    }
    pass.nanoseconds = cbench_now() - start
    return pass
  }

  func scan(passes: Int) throws -> Pass {
    var pass = Pass()
    let start = cbench_now()
    for _ in 0..<passes {
      var next: UInt64 = 0
      while try touchPage(next, &pass) { next += 1 }
    }
    pass.nanoseconds = cbench_now() - start
    return pass
  }

  /// - Returns: whether there is such a page.
  private func touchPage(_ number: UInt64, _ pass: inout Pass) throws -> Bool {
    var digest: UInt64 = 0
    let count = try environment.read { transaction -> Int? in
      guard let page = try transaction.view(of: number, in: table) else { return nil }
      try page.forEach { record in
        digest ^= touch(record.extracting(16..<record.byteCount))
      }
      return page.count
    }
    pass.digest ^= digest
    pass.operations += count ?? 0
    return count != nil
  }
}

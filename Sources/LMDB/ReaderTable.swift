internal import CLMDB
import Foundation

/// One used slot of the reader table that all processes share. Corresponds to a line of
/// `mdb_reader_list`.
public struct ReaderSlot: Sendable, Hashable {
  /// The process that took the slot.
  public let process: Int32
  /// The thread that took it, as the system's thread library numbers it; another may use it now.
  public let thread: UInt
  /// The snapshot that it holds; nil while it is kept for the next read.
  public let transaction: UInt64?
  /// How many transactions were committed since that snapshot; nil without one. The pages that they
  /// gave up are not reused before the reader ends.
  public let lag: UInt64?
  /// Whether the process exists. A process that took over the number of a dead one counts as alive;
  /// ``Environment/clearDeadReaders()`` is not misled by that.
  public let isAlive: Bool
}

extension Environment {
  /// The readers of all processes, and what each keeps.
  ///
  /// A look at a table that others change meanwhile: it may be out of date when it returns.
  /// - Returns: the used slots in the table's order; none where the environment was opened without a
  ///   lock file.
  /// - Throws: `closed`, `broken`, `forked`.
  /// - Cost: some microseconds per slot ever used. Corresponds to `mdb_reader_list`.
  public func readers() throws(LMDBError) -> [ReaderSlot] {
    try inside("readers") { () throws(LMDBError) in
      let lines = ReaderLines()
      // SAFETY: the context lives through the call, and LMDB hands it to no other one.
      let result = withExtendedLifetime(lines) {
        unsafe mdb_reader_list(
          handle,
          { text, context in
            guard let text = unsafe text, let context = unsafe context else { return -1 }
            unsafe Unmanaged<ReaderLines>.fromOpaque(context).takeUnretainedValue()
              .append(String(cString: text))
            return 0
          }, Unmanaged.passUnretained(lines).toOpaque())
      }
      guard result >= 0 else {
        throw LMDBError(.other, rawCode: result, operation: "mdb_reader_list", path: path)
      }
      let last = numbers().lastTransaction
      return lines.slots(lastTransaction: last)
    }
  }

  /// Frees the slots of readers whose process has died without ending them, and with them the pages
  /// that they kept. Done by itself when the environment is opened, when the table or the map is
  /// full; a process that runs for weeks beside others that crash may call it now and then.
  /// - Returns: how many slots were freed.
  /// - Throws: `closed`, `broken`, `forked`, what LMDB reports.
  /// - Cost: one file lock asked for per process in the table. Corresponds to `mdb_reader_check`.
  @discardableResult
  public func clearDeadReaders() throws(LMDBError) -> Int {
    try inside("clearDeadReaders") { () throws(LMDBError) in
      var dead: Int32 = 0
      try check(unsafe mdb_reader_check(handle, &dead), "mdb_reader_check")
      return Int(dead)
    }
  }
}

/// Collects the lines of text in which LMDB 0.9 tells its reader table.
private final class ReaderLines {
  private var lines: [String] = []

  func append(_ line: String) { lines.append(line) }

  /// Each line has a process in decimal, a thread in hexadecimal, and a transaction or `-`. The
  /// heading and the remarks in parentheses that stand beside them have no number in front.
  func slots(lastTransaction: UInt64) -> [ReaderSlot] {
    lines.compactMap { line in
      let fields = line.split(whereSeparator: \.isWhitespace)
      guard fields.count == 3, let process = Int32(fields[0]),
        let thread = UInt(fields[1], radix: 16)
      else { return nil }
      let transaction = UInt64(fields[2])
      let isAlive = kill(process, 0) == 0 || errno == EPERM
      return ReaderSlot(
        process: process, thread: thread, transaction: transaction,
        // A snapshot may be newer than the number asked for before it began.
        lag: transaction.map { lastTransaction > $0 ? lastTransaction - $0 : 0 }, isAlive: isAlive)
    }
  }
}

public import Foundation
import HubProtocol
import LMDB

extension Profile {
  /// Writes the records as lines of JSON, as they are on this device, all in one snapshot.
  ///
  /// The account is compared with owner and session. An export belongs to no account: it is taken in
  /// as a copy, see ``importRecords(from:sourceAccount:account:)``. The first line names hub, account
  /// and profile; then comes one for each record (`record`, `payload` in Base64, `hubVersion`,
  /// `pending`); the last says how many there were (`end`, `records`), so that a part is no whole.
  /// - Parameters:
  ///   - account: whose profile this is; the first line names it.
  ///   - selection: which records; all by default.
  ///   - write: takes the next lines, some hundred KiB at a time; what it throws ends the export.
  /// - Returns: how many records were written.
  /// - Throws: as ``copyRecords(from:sourceAccount:account:selecting:)``; what `write` throws.
  /// - Cost: reads each record once. Blocks its thread while `write` does, and keeps a snapshot, so
  ///   that the file of an area that is written meanwhile grows.
  @discardableResult
  public func exportRecords(
    account: VerifiedAccount, selecting selection: RecordSelection = .all,
    to write: (Data) throws -> Void
  ) throws -> Int {
    try requireRecordsHere()
    try requireOwned(by: account)
    var lines = try RecordLines.encode(
      RecordLines.Head(
        hub: account.hub, account: String(decoding: account.id.bytes, as: UTF8.self),
        profile: id.description, exportedAt: registry.policy.now().timeIntervalSince1970))
    var count = 0
    try visitRecords(selection) { record in
      lines += try RecordLines.encode(
        RecordLines.Line(
          record: String(decoding: record.id.bytes, as: UTF8.self), payload: record.payload,
          hubVersion: record.version, pending: record.isPending))
      count += 1
      guard lines.count >= Self.writeByteCount else { return }
      try write(lines)
      lines = Data()
    }
    // Whoever signed out meanwhile gets no end, and with it no whole export.
    try requireOwned(by: account)
    try write(lines + RecordLines.encode(RecordLines.End(records: count)))
    return count
  }

  /// Lines are handed over from this size on.
  private static let writeByteCount = 256 << 10
  /// Records and payload bytes that are taken over in one transaction.
  private static let importCountMax = 500
  private static let importByteCountMax = 4 << 20

  /// Takes an export in, as changes of this account with UUIDs of their own.
  ///
  /// The export must name `sourceAccount`, so that nobody takes in another account's records by
  /// mistake; it may be the same account as this profile's. Each record goes in as in
  /// ``copyRecords(from:sourceAccount:account:selecting:)``: never over anything unseen, and passed over
  /// when it is here already. Some hundred records share a transaction; an import that stopped is
  /// begun again from the start, and takes in what is missing.
  /// - Parameters:
  ///   - chunks: the export's bytes, cut anywhere.
  ///   - sourceAccount: whose records they are.
  ///   - account: whose profile this is.
  /// - Returns: the receipt, kept once the whole export was taken in.
  /// - Throws: `undecodable` when it is no export, is cut off or names another account; as
  ///   ``copyRecords(from:sourceAccount:account:selecting:)``; what `chunks` throws. What was
  ///   taken in before stays.
  @discardableResult
  public nonisolated(nonsending) func importRecords<Chunks: AsyncSequence>(
    from chunks: Chunks, sourceAccount: VerifiedAccount, account: VerifiedAccount
  ) async throws -> CopyReceipt where Chunks.Element == Data {
    try requireRecordsHere()
    var reading = ImportReading(sourceAccount: sourceAccount)
    var receipt: CopyReceipt?
    var iterator = chunks.makeAsyncIterator()
    while let chunk = try await iterator.next(isolation: #isolation) {
      try reading.add(chunk)
      let isFull =
        reading.records.count >= Self.importCountMax
        || reading.byteCount >= Self.importByteCountMax
      if isFull, let head = reading.head {
        receipt = try await take(
          reading.takeRecords(), receipt ?? self.receipt(head, sourceAccount), account)
      }
    }
    let head = try reading.end()
    return try await take(
      reading.takeRecords(), receipt ?? self.receipt(head, sourceAccount), account, isLast: true)
  }

  private func receipt(
    _ head: RecordLines.Head, _ sourceAccount: VerifiedAccount
  ) throws(StoreError) -> CopyReceipt {
    guard let source = AreaID(head.profile) else {
      throw RecordLines.unreadable("its first line names no profile")
    }
    return CopyReceipt(
      id: TimeOrderedUUID.next(), source: source, sourceAccount: sourceAccount,
      copiedAt: registry.policy.now(), records: 0, parked: 0, unchanged: 0)
  }

  private func take(
    _ records: [(RecordID, Data)], _ receipt: CopyReceipt, _ account: VerifiedAccount,
    isLast: Bool = false
  ) async throws -> CopyReceipt {
    try await takingCopies(receipt, account: account, isKept: isLast) { take in
      for (record, payload) in records { try take(record, payload) }
    }
  }
}

/// Reads an export line by line. A value.
struct ImportReading {
  let sourceAccount: VerifiedAccount
  private(set) var head: RecordLines.Head?
  /// Read and not taken yet.
  private(set) var records: [(RecordID, Data)] = []
  private(set) var byteCount = 0
  private var cutter = LineCutter()
  private var count = 0
  private var hasEnded = false

  init(sourceAccount: VerifiedAccount) { self.sourceAccount = sourceAccount }

  mutating func add(_ chunk: Data) throws(StoreError) {
    for line in try cutter.add(chunk) { try add(line: line) }
  }

  mutating func takeRecords() -> [(RecordID, Data)] {
    defer { (records, byteCount) = ([], 0) }
    return records
  }

  /// - Returns: the first line.
  /// - Throws: `undecodable` when the end is missing.
  func end() throws(StoreError) -> RecordLines.Head {
    guard let head, hasEnded, cutter.isEmpty else {
      throw RecordLines.unreadable("its end is missing, import it again from a whole file")
    }
    return head
  }

  private mutating func add(line: Data) throws(StoreError) {
    guard !hasEnded else { throw RecordLines.unreadable("something follows its end") }
    guard head != nil else {
      head = try readHead(line)
      return
    }
    if !line.starts(with: Data(#"{"end""#.utf8)) {
      let record = try RecordLines.decode(RecordLines.Line.self, line)
      let id = RecordID(record.record)
      try Area.validate(id)
      records.append((id, record.payload))
      byteCount += record.payload.count
      count += 1
      return
    }
    guard try RecordLines.decode(RecordLines.End.self, line).records == count else {
      throw RecordLines.unreadable("it has another number of records than its end says")
    }
    hasEnded = true
  }

  private func readHead(_ line: Data) throws(StoreError) -> RecordLines.Head {
    let head = try RecordLines.decode(RecordLines.Head.self, line)
    guard head.holdfast == "records" else { throw RecordLines.unreadable("its first line says so") }
    guard head.version <= RecordLines.version else {
      throw StoreError(
        .newerFormat,
        "the export has version \(head.version), this program reads up to \(RecordLines.version): "
          + "update the program")
    }
    // Byte for byte: `==` of strings would take one way to write a letter for another.
    guard head.hub == sourceAccount.hub, Array(head.account.utf8) == sourceAccount.id.bytes else {
      throw RecordLines.unreadable("it holds another account's records than the call names")
    }
    return head
  }
}

extension PackedRecords {
  /// Packs records one by one, each copied once, straight into the page; see
  /// ``WriteTransaction/put(recordCount:contentByteCount:for:in:_:)``.
  @safe public struct Packer: ~Copyable, ~Escapable {
    // SAFETY: the room is that of `put`, which lends the packer to a closure and is not left before
    // the closure is; a packer can be neither copied, kept, exchanged nor made by anybody else.
    private let room: UnsafeMutableRawBufferPointer
    private let recordCount: Int
    private let start: Int
    private var end = 0
    /// How many records were packed so far.
    public private(set) var packedCount = 0

    @unsafe @_lifetime(borrow room)
    fileprivate init(_ room: UnsafeMutableRawBufferPointer, recordCount: Int) {
      unsafe self.room = room
      self.recordCount = recordCount
      start = PackedRecords.headByteCount(recordCount)
      unsafe room.storeBytes(of: UInt32(recordCount).littleEndian, as: UInt32.self)
    }

    /// Packs a record behind the others.
    /// - Precondition: no more records and bytes than were announced.
    @_lifetime(self: copy self)
    public mutating func append(_ record: RawSpan) {
      trapUnless(
        unsafe packedCount < recordCount && record.byteCount <= room.count - start - end,
        "more records are packed than were announced (\(recordCount))")
      // SAFETY: just checked; the place of the end lies within the head.
      unsafe record.withUnsafeBytes { record in
        unsafe UnsafeMutableRawBufferPointer(
          rebasing: room[start + end..<start + end + record.count]
        ).copyMemory(from: record)
      }
      end += record.byteCount
      packedCount += 1
      unsafe room.storeBytes(
        of: UInt32(end).littleEndian, toByteOffset: 4 * packedCount, as: UInt32.self)
    }

    fileprivate func requireDone() {
      trapUnless(
        unsafe packedCount == recordCount && start + end == room.count,
        "fewer records are packed than were announced (\(packedCount) of \(recordCount))")
    }
  }

  /// The count, and the end of each record.
  fileprivate static func headByteCount(_ recordCount: Int) -> Int { 4 + 4 * recordCount }
}

extension WriteTransaction {
  /// Stores packed records in place of what was there, each copied once, from where it lies.
  ///
  /// For records whose number and size are known, such as those of a page that was received; else
  /// collect them in ``PackedRecords``. Nothing is allocated.
  /// - Parameters:
  ///   - recordCount: how many records `body` packs, 0 or more.
  ///   - contentByteCount: the bytes of all records together; with the head the value has up to
  ///     1 GiB.
  ///   - key: 1 to 511 bytes when encoded.
  ///   - table: a table of the transaction's environment.
  ///   - body: packs the records. It may run more than once, as the write's own closure may.
  /// - Precondition: `body` packs exactly what was announced.
  /// - Throws: `badKeySize`, `valueTooLarge`; `body` was not called then.
  /// - Cost: one search, one copy of each record. Corresponds to `MDB_RESERVE`.
  public mutating func put<K>(
    recordCount: Int, contentByteCount: Int, for key: K.Key, in table: Table<K, PackedRecordsCodec>,
    _ body: (inout PackedRecords.Packer) -> Void
  ) throws(LMDBError) {
    trapUnless(
      recordCount >= 0 && contentByteCount >= 0,
      "\(recordCount) records of \(contentByteCount) bytes")
    // More than any value holds, so that the sum below cannot overflow.
    guard recordCount < Self.valueByteCountMax, contentByteCount <= Self.valueByteCountMax else {
      throw unsafe LMDBError(
        .valueTooLarge, operation: "mdb_put", path: core.environment.path, table: table.name,
        detail: "\(recordCount) records, \(contentByteCount) bytes")
    }
    let byteCount = PackedRecords.headByteCount(recordCount) + contentByteCount
    try put(byteCount: byteCount, for: key, in: table) { output in
      unsafe output.withUnsafeMutableBytes { room, filled in
        var packer = unsafe PackedRecords.Packer(room, recordCount: recordCount)
        body(&packer)
        packer.requireDone()
        filled = byteCount
      }
    }
  }
}

/// Many small records as one value: written with one search and read back with one, several times as
/// fast as the same records one by one.
///
/// For what is written and read together, such as a downloaded page. The value is a count, the end of
/// each record (both 32-bit little-endian), then the records' bytes.
public struct PackedRecords: Sendable {
  private var ends: [UInt32] = []
  private var contents: [UInt8] = []

  /// No records.
  public init() {}

  /// How many records there are.
  public var count: Int { ends.count }

  /// The value's size, in bytes.
  public var byteCount: Int { 4 + 4 * ends.count + contents.count }

  /// Adds a record.
  /// - Precondition: all records together have less than 4 GiB; a table takes 1 GiB.
  public mutating func append(_ record: RawSpan) {
    // SAFETY: the buffer is read within the closure only.
    unsafe record.withUnsafeBytes { unsafe contents.append(contentsOf: $0) }
    ends.append(UInt32(contents.count))
  }

  /// Adds a record.
  public mutating func append(_ record: [UInt8]) { append(unsafe record.span.bytes) }

  /// Removes all records and keeps the memory.
  public mutating func removeAll() {
    ends.removeAll(keepingCapacity: true)
    contents.removeAll(keepingCapacity: true)
  }

  /// Writes the value.
  @usableFromInline
  func write(to output: inout OutputRawSpan) {
    unsafe output.append(UInt32(ends.count).littleEndian, as: UInt32.self)
    for end in ends { unsafe output.append(end.littleEndian, as: UInt32.self) }
    // SAFETY: the caller made room for `byteCount` bytes; the buffer is read within the closure.
    unsafe output.withUnsafeMutableBytes { room, filled in
      unsafe contents.withUnsafeBytes { contents in
        unsafe UnsafeMutableRawBufferPointer(rebasing: room[filled...])
          .copyMemory(from: contents)
      }
      filled += contents.count
    }
  }

  /// Stored records, lent in place.
  ///
  /// Making one looks at the value's head only; each record's place is checked when it is asked for.
  public struct View: ~Escapable {
    @usableFromInline let bytes: RawSpan
    /// How many records there are.
    public let count: Int
    /// Where the records begin.
    @usableFromInline let start: Int

    /// - Throws: `badForm` when the value's size is not what its head says.
    @inlinable
    @_lifetime(copy bytes)
    init(_ bytes: RawSpan) throws(LMDBError) {
      self.bytes = bytes
      count = bytes.byteCount >= 4 ? Self.number(bytes, 0) : .max
      guard count <= (bytes.byteCount - 4) / 4 else { throw Self.badForm() }
      start = 4 + 4 * count
      let end = count == 0 ? 0 : Self.number(bytes, count)
      guard end == bytes.byteCount - start else { throw Self.badForm() }
    }

    /// Lends a record.
    /// - Precondition: the index lies within `0..<count`.
    /// - Throws: `badForm` when the record's place does not lie within the value.
    @inlinable
    @_lifetime(copy self)
    public func record(at index: Int) throws(LMDBError) -> RawSpan {
      if index < 0 || index >= count { trap("there is no packed record \(index) of \(count)") }
      let first = index == 0 ? 0 : Self.number(bytes, index)
      let last = Self.number(bytes, index + 1)
      guard first <= last, last <= bytes.byteCount - start else { throw Self.badForm() }
      // SAFETY: just checked.
      return unsafe bytes.extracting(unchecked: start + first..<start + last)
    }

    /// Lends each record to `body`, in order.
    /// - Throws: `badForm` when a record's place does not lie within the value; what `body` throws.
    @inlinable
    public func forEach(_ body: (RawSpan) throws -> Void) throws {
      var first = 0
      for index in 0..<count {
        let last = Self.number(bytes, index + 1)
        guard first <= last, last <= bytes.byteCount - start else { throw Self.badForm() }
        // SAFETY: just checked.
        try body(unsafe bytes.extracting(unchecked: start + first..<start + last))
        first = last
      }
    }

    /// The count is at place 0, the end of record `i` at place `i + 1`.
    @inlinable
    static func number(_ bytes: RawSpan, _ place: Int) -> Int {
      // SAFETY: any bit pattern is an integer; the span's own check holds the bounds.
      unsafe Int(
        UInt32(littleEndian: bytes.unsafeLoadUnaligned(fromByteOffset: 4 * place, as: UInt32.self)))
    }

    @usableFromInline
    static func badForm() -> LMDBError {
      LMDBError(.badForm, operation: "decode", detail: "these are no packed records")
    }
  }
}

/// Many small records as one value; see ``PackedRecords``.
public enum PackedRecordsCodec: BorrowingValueCodec {
  /// Lends the value's bytes, made for it. ``WriteTransaction`` writes them in place instead.
  /// - Throws: what `body` throws.
  public static func withEncoded<R>(
    _ value: PackedRecords, _ body: (RawSpan) throws(LMDBError) -> R
  ) throws(LMDBError) -> R {
    let bytes = unsafe [UInt8](unsafeUninitializedCapacity: value.byteCount) { room, filled in
      var output = unsafe OutputRawSpan(
        buffer: UnsafeMutableRawBufferPointer(room), initializedCount: 0)
      value.write(to: &output)
      filled = unsafe output.finalize(for: UnsafeMutableRawBufferPointer(room))
    }
    return try body(unsafe bytes.span.bytes)
  }

  /// Copies the records.
  /// - Throws: `badForm` when the bytes are no packed records.
  public static func decode(_ bytes: RawSpan) throws(LMDBError) -> PackedRecords {
    let view = try view(bytes)
    var records = PackedRecords()
    for index in 0..<view.count { records.append(try view.record(at: index)) }
    return records
  }

  /// Reads the records in place.
  /// - Throws: `badForm` when the bytes are no packed records.
  @inlinable
  @_lifetime(copy bytes)
  public static func view(_ bytes: RawSpan) throws(LMDBError) -> PackedRecords.View {
    try PackedRecords.View(bytes)
  }
}

extension WriteTransaction {
  /// Stores packed records in place of what was there, written straight into the page.
  /// - Throws: `badKeySize`, `valueTooLarge`.
  /// - Cost: one search and the records copied once. Corresponds to `mdb_put` with `MDB_RESERVE`.
  @inlinable
  public mutating func put<K>(
    _ records: PackedRecords, for key: K.Key, in table: Table<K, PackedRecordsCodec>
  ) throws(LMDBError) {
    try put(byteCount: records.byteCount, for: key, in: table) { records.write(to: &$0) }
  }
}

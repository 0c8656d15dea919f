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
  public struct View: ~Escapable {
    private let bytes: RawSpan
    /// How many records there are.
    public let count: Int

    /// - Throws: `badForm` when the records' ends do not fit the value.
    @usableFromInline
    @_lifetime(copy bytes)
    init(_ bytes: RawSpan) throws(LMDBError) {
      var isWhole = bytes.byteCount >= 4
      let count = isWhole ? Int(Self.number(bytes, 0)) : 0
      isWhole = isWhole && count <= (bytes.byteCount - 4) / 4
      if isWhole {
        let contentCount = bytes.byteCount - 4 - 4 * count
        var last = 0
        for index in 0..<count {
          let end = Int(Self.number(bytes, index + 1))
          if end < last { isWhole = false }
          last = max(end, last)
        }
        isWhole = isWhole && last == contentCount
      }
      guard isWhole else {
        throw LMDBError(.badForm, operation: "decode", detail: "these are no packed records")
      }
      self.bytes = bytes
      self.count = count
    }

    /// Lends a record.
    /// - Precondition: the index lies within `0..<count`.
    public subscript(index: Int) -> RawSpan {
      @_lifetime(copy self)
      get {
        trapUnless(index >= 0 && index < count, "no packed record \(index) of \(count)")
        let base = 4 + 4 * count
        let start = index == 0 ? 0 : Int(Self.number(bytes, index))
        return bytes.extracting(base + start..<base + Int(Self.number(bytes, index + 1)))
      }
    }

    /// The count is at place 0, the end of record `i` at place `i + 1`.
    private static func number(_ bytes: RawSpan, _ place: Int) -> UInt32 {
      // SAFETY: any bit pattern is an integer; the span's own check holds the bounds.
      unsafe UInt32(
        littleEndian: bytes.unsafeLoadUnaligned(fromByteOffset: 4 * place, as: UInt32.self))
    }
  }
}

/// Many small records as one value; see ``PackedRecords``.
public enum PackedRecordsCodec: BorrowingValueCodec {
  /// Lends the value's bytes, made for it. ``WriteTransaction`` writes them in place instead.
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
    for index in 0..<view.count { records.append(view[index]) }
    return records
  }

  /// Reads the records in place.
  /// - Throws: `badForm` when the bytes are no packed records.
  @_lifetime(copy bytes)
  public static func view(_ bytes: RawSpan) throws(LMDBError) -> PackedRecords.View {
    try PackedRecords.View(bytes)
  }
}

extension WriteTransaction {
  /// Stores packed records in place of what was there, written straight into the page.
  /// - Throws: as ``put(_:for:in:)``.
  @inlinable
  public mutating func put<K>(
    _ records: PackedRecords, for key: K.Key, in table: Table<K, PackedRecordsCodec>
  ) throws(LMDBError) {
    try put(byteCount: records.byteCount, for: key, in: table) { records.write(to: &$0) }
  }
}

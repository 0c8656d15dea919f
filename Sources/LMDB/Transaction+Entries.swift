extension Transaction where Self: ~Copyable {
  /// Lends each entry of a range, decoded, to `body`, in key order or backwards, until it says
  /// `.stop`.
  ///
  /// Every key and value is decoded; where a scan decides by few of them, take
  /// ``scan(_:_:reversed:limit:prefetch:_:)`` and decode those.
  /// - Parameters:
  ///   - table: a table of the transaction's environment.
  ///   - range: the keys to visit; all by default.
  ///   - reversed: from the last key to the first; false by default.
  ///   - limit: the most entries to visit; all by default.
  ///   - prefetch: whether memory is asked for ahead of the scan; not by default.
  ///   - body: gets a decoded entry.
  /// - Throws: `badKeySize`; `badForm` from the codecs; what LMDB reports; what `body` throws.
  /// - Cost: one search, one step and two decodings per entry.
  @inlinable
  public borrowing func scan<K, V>(
    decoding table: Table<K, V>, _ range: KeyRange<K.Key> = .all, reversed: Bool = false,
    limit: Int = .max, prefetch: ScanPrefetch = .none,
    _ body: (_ key: K.Key, _ value: V.Value) throws -> ScanStep
  ) throws {
    try scan(table, range, reversed: reversed, limit: limit, prefetch: prefetch) { key, value in
      try body(try K.decode(key), try V.decode(value))
    }
  }

  /// The entries of a range, decoded, in key order or backwards.
  ///
  /// - Parameters:
  ///   - table: a table of the transaction's environment.
  ///   - range: the keys to visit; all by default.
  ///   - reversed: from the last key to the first; false by default.
  ///   - limit: the most entries to return; all by default, and all of them in memory.
  /// - Returns: pairs of key and value; none where the range is empty.
  /// - Throws: `badKeySize`; `badForm` from the codecs; what LMDB reports.
  /// - Cost: as ``scan(decoding:_:reversed:limit:prefetch:_:)``, and an array.
  @inlinable
  public borrowing func entries<K, V>(
    in table: Table<K, V>, _ range: KeyRange<K.Key> = .all, reversed: Bool = false,
    limit: Int = .max
  ) throws -> [(key: K.Key, value: V.Value)] {
    var found: [(key: K.Key, value: V.Value)] = []
    try scan(decoding: table, range, reversed: reversed, limit: limit) { key, value in
      found.append((key, value))
      return .next
    }
    return found
  }

  /// The keys of a range, decoded, in order or backwards; values are not looked at.
  ///
  /// - Parameters:
  ///   - table: a table of the transaction's environment.
  ///   - range: the keys to visit; all by default.
  ///   - reversed: from the last key to the first; false by default.
  ///   - limit: the most keys to return; all by default, and all of them in memory.
  /// - Throws: `badKeySize`; `badForm` from the codec; what LMDB reports.
  @inlinable
  public borrowing func keys<K, V>(
    in table: Table<K, V>, _ range: KeyRange<K.Key> = .all, reversed: Bool = false,
    limit: Int = .max
  ) throws -> [K.Key] {
    var found: [K.Key] = []
    try scan(table, range, reversed: reversed, limit: limit) { key, _ in
      found.append(try K.decode(key))
      return .next
    }
    return found
  }

  /// The first entry of a range, or the last with `reversed`, decoded; nil if there is none.
  /// - Throws: `badKeySize`; `badForm` from the codecs; what LMDB reports.
  /// - Cost: one search.
  @inlinable
  public borrowing func firstEntry<K, V>(
    in table: Table<K, V>, _ range: KeyRange<K.Key> = .all, reversed: Bool = false
  ) throws -> (key: K.Key, value: V.Value)? {
    try entries(in: table, range, reversed: reversed, limit: 1).first
  }
}

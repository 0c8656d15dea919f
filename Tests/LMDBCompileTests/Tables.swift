/// Tables: their keys and values have types, and what a kind of table cannot do it does not offer.
let tables = [
  Snippet(
    "a key of another type", error: "cannot convert value of type 'String'",
    """
      try environment.read { transaction in
        _ = try transaction.value(of: "seven", in: numbers)  // wrong
        _ = try transaction.value(of: "seven", in: names)  // right
      }
    """),
  Snippet(
    "a value of another type", error: "cannot convert value of type 'String'",
    """
      try environment.write { transaction in
        try transaction.put("seven", for: 7, in: numbers)  // wrong
        try transaction.put([7], for: 7, in: numbers)  // right
      }
    """),
  Snippet(
    "a range of keys of another type", error: "cannot convert value of type",
    """
      try environment.read { transaction in
        try transaction.scan(numbers, .prefix("a")) { _, _ in .next }  // wrong
        try transaction.scan(names, .prefix("a")) { _, _ in .next }  // right
      }
    """),
  Snippet(
    "a table of one type, taken for a table of another",
    error: "cannot assign value of type",
    """
      let other: Table<UInt64Codec, TextCodec> = numbers  // wrong
      let other: Table<UInt64Codec, BytesCodec> = numbers  // right
      _ = other.name
    """),
  Snippet(
    "one value asked of a table that has several per key",
    error: "to expected argument type 'Table<K, V>'",
    """
      try environment.read { transaction in
        _ = try transaction.value(of: "a", in: index)  // wrong
        _ = try transaction.values(of: "a", in: index)  // right
      }
    """),
  Snippet(
    "a put into a table that has several values per key",
    error: "to expected argument type 'Table<K, V>'",
    """
      try environment.write { transaction in
        try transaction.put(7, for: "a", in: index)  // wrong
        try transaction.insert(7, for: "a", in: index)  // right
      }
    """),
  Snippet(
    "room reserved in a table that has several values per key",
    error: "to expected argument type 'Table<K, V>'",
    """
      try environment.write { transaction in
        try transaction.put(byteCount: 8, for: "a", in: index) { _ in }  // wrong
        try transaction.put(byteCount: 8, for: "a", in: names) { _ in }  // right
      }
    """),
  Snippet(
    "several values for a key of a table that has one",
    error: "to expected argument type 'MultiTable<K, V>'",
    """
      try environment.write { transaction in
        try transaction.insert(7, for: "a", in: names)  // wrong
        try transaction.insert(7, for: "a", in: index)  // right
      }
    """),
  Snippet(
    "blocks of values that have no common size", error: "FixedKeyCodec",
    """
      try environment.read { transaction in
        try transaction.scanValueBlocks(of: "a", in: words) { _ in .next }  // wrong
        try transaction.scanValueBlocks(of: "a", in: index) { _ in .next }  // right
      }
    """),
  Snippet(
    "values in order that have none", error: "KeyCodec",
    """
      _ = try environment.multiTable(
        "pages", key: TextCodec.self, value: PackedRecordsCodec.self)  // wrong
        "pages", key: TextCodec.self, value: UUIDCodec.self)  // right
    """),
  Snippet(
    "a composite key whose first part does not say where it ends", error: "KeyComponentCodec",
    """
      _ = try environment.table(
        "t", key: PairCodec<DataCodec, UInt64Codec>.self, value: BytesCodec.self)  // wrong
        "t", key: PairCodec<BytesCodec, UInt64Codec>.self, value: BytesCodec.self)  // right
    """),
  Snippet(
    "a view of a value whose codec makes none", error: "BorrowingValueCodec",
    """
      try environment.read { transaction in
        _ = try transaction.view(of: "a", in: names)  // wrong
        _ = try transaction.view(of: 1, in: numbers)?.byteCount  // right
      }
    """),
  Snippet(
    "a table that no environment opened",
    error: "is inaccessible due to 'internal' protection level",
    """
      let table = Table<TextCodec, UInt64Codec>(base: names.base)  // wrong
      let table = try environment.table(  // right
        "t", key: TextCodec.self, value: UInt64Codec.self)  // right
      _ = table.name
    """),
  Snippet(
    "an error code of the caller's own", error: "initializer is inaccessible",
    """
      _ = LMDBError(LMDBError.Code("mine"), operation: "read")  // wrong
      _ = LMDBError(.badForm, operation: "read")  // right
    """),
]

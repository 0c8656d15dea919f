/// Cursors: within their transaction, and alone while they can write.
let cursors = [
  Snippet(
    "a cursor, returned by the closure of a read", error: "'read' requires that 'Found'",
    """
      typealias Found = Cursor<UInt64Codec, BytesCodec>  // wrong
      let found = try environment.read { transaction -> Found in  // wrong
      let found = try environment.read { transaction in  // right
        try transaction.cursor(in: numbers)  // wrong
        try transaction.firstKey(in: numbers)  // right
      }
      _ = found
    """),
  Snippet(
    "a value lent by a cursor, used after the cursor moved",
    error: "overlapping accesses to 'cursor'",
    """
      try environment.read { transaction in
        var cursor = try transaction.cursor(in: numbers)
        guard try cursor.next() else { return }
        do {
          let value = cursor.valueBytes
          _ = try cursor.next()  // wrong
          use(value)
        }
        _ = try cursor.next()  // right
      }
    """),
  Snippet(
    "a value lent by a cursor, kept beyond it", error: "escapes its scope",
    """
      var kept = RawSpan()  // wrong
      var kept: [UInt8] = []  // right
      try environment.read { transaction in
        var cursor = try transaction.cursor(in: numbers)
        guard try cursor.next() else { return }
        kept = cursor.valueBytes  // wrong
        kept = try cursor.value()  // right
      }
      use(kept)  // wrong
      use(kept.count)  // right
    """),
  Snippet(
    "a put while a cursor is alive", error: "overlapping accesses to 'transaction'",
    """
      try environment.write { transaction in
        var isThere = false
        do {
          var cursor = try transaction.cursor(in: numbers)
          isThere = try cursor.seek(to: 7)
          if !isThere { try transaction.put([1], for: 7, in: numbers) }  // wrong
          _ = try cursor.next()
        }
        if !isThere { try transaction.put([1], for: 7, in: numbers) }  // right
      }
    """),
  Snippet(
    "a put while a write cursor is alive", error: "overlapping accesses to 'transaction'",
    """
      try environment.write { transaction in
        do {
          var cursor = try transaction.writeCursor(in: numbers)
          if try cursor.seek(to: 7) { try cursor.delete() }
          try transaction.put([1], for: 8, in: numbers)  // wrong
          _ = try cursor.next()
        }
        try transaction.put([1], for: 8, in: numbers)  // right
      }
    """),
  Snippet(
    "two write cursors at once", error: "overlapping accesses to 'transaction'",
    """
      try environment.write { transaction in
        do {
          var first = try transaction.writeCursor(in: numbers)
          _ = try first.next()
          var second = try transaction.writeCursor(in: numbers)  // wrong
          _ = try second.next()  // wrong
          try first.delete()
        }
        var second = try transaction.writeCursor(in: numbers)  // right
        _ = try second.next()  // right
      }
    """),
  Snippet(
    "a value lent by a write cursor, used after it was deleted",
    error: "overlapping accesses to 'cursor'",
    """
      try environment.write { transaction in
        var cursor = try transaction.writeCursor(in: numbers)
        guard try cursor.first() else { return }
        do {
          let value = cursor.valueBytes
          try cursor.delete()  // wrong
          use(value)
        }
        try cursor.delete()  // right
      }
    """),
  Snippet(
    "a write cursor in a snapshot",
    error: "'ReadTransaction' has no member 'writeCursor'",
    """
      try environment.read { transaction in
        var cursor = try transaction.writeCursor(in: numbers)  // wrong
        var cursor = try transaction.cursor(in: numbers)  // right
        _ = try cursor.next()
      }
    """),
  Snippet(
    "a cursor, copied", error: "'cursor' used after consume",
    """
      try environment.read { transaction in
        var cursor = try transaction.cursor(in: numbers)
        var other = cursor  // wrong
        var other = try transaction.cursor(in: numbers)  // right
        _ = try other.next()
        _ = try cursor.next()
      }
    """),
]

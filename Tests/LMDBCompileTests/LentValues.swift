/// Values that LMDB lends: they end with the closure, the transaction, or its next write.
let lentValues = [
  Snippet(
    "a value lent by a scan, kept in a variable outside", error: "escapes its scope",
    """
      try environment.read { transaction in
        var kept = RawSpan()  // wrong
        var kept = 0  // right
        try transaction.scan(numbers) { _, value in
          kept = value  // wrong
          kept = value.byteCount  // right
          return .next
        }
        use(kept)
      }
    """),
  Snippet(
    "a key lent by a scan, kept in a variable outside", error: "escapes its scope",
    """
      try environment.read { transaction in
        var kept = RawSpan()  // wrong
        var kept: [UInt8] = []  // right
        try transaction.scan(numbers) { key, _ in
          kept = key  // wrong
          kept = key.copiedBytes()  // right
          return .stop
        }
        use(kept)  // wrong
        use(kept.count)  // right
      }
    """),
  Snippet(
    "a lent value, returned by the closure of a read", error: "Escapable",
    """
      let found = try environment.read { transaction -> RawSpan? in  // wrong
      let found = try environment.read { transaction -> [UInt8]? in  // right
        try transaction.bytes(of: 1, in: numbers)  // wrong
        try transaction.bytes(of: 1, in: numbers)?.copiedBytes()  // right
      }
      _ = found
    """),
  Snippet(
    "a lent value, stored in a class", error: "cannot return a ~Escapable result",
    declarations: """
      private final class Box {
        var bytes = RawSpan()  // wrong
        var bytes: [UInt8] = []  // right
      }
      """,
    """
      let box = Box()
      try environment.read { transaction in
        guard let value = try transaction.bytes(of: 1, in: numbers) else { return }
        box.bytes = value  // wrong
        box.bytes = value.copiedBytes()  // right
      }
    """),
  Snippet(
    "a lent value, collected in an array", error: "Escapable",
    """
      try environment.read { transaction in
        var found: [RawSpan] = []  // wrong
        var found: [[UInt8]] = []  // right
        try transaction.scan(numbers) { _, value in
          found.append(value)  // wrong
          found.append(value.copiedBytes())  // right
          return .next
        }
      }
    """),
  Snippet(
    "a lent value, used by a task that outlives the read", error: "escapes its scope",
    """
      try environment.read { transaction in
        guard let value = try transaction.bytes(of: 1, in: numbers) else { return }
        let byteCount = value.byteCount
        Task { use(value.byteCount) }  // wrong
        Task { use(byteCount) }  // right
      }
    """),
  Snippet(
    "a value read in one transaction and used after it", error: "escapes its scope",
    """
      var kept: RawSpan?  // wrong
      var kept: [UInt8]?  // right
      try environment.read { transaction in
        kept = try transaction.bytes(of: 1, in: numbers)  // wrong
        kept = try transaction.value(of: 1, in: numbers)  // right
      }
      try environment.read { _ in use(kept?.byteCount ?? 0) }  // wrong
      try environment.read { _ in use(kept?.count ?? 0) }  // right
    """),
  Snippet(
    "a put while a lent value is alive", error: "overlapping accesses to 'transaction'",
    """
      try environment.write { transaction in
        do {
          let value = try transaction.bytes(of: 1, in: numbers)
          try transaction.put([1], for: 2, in: numbers)  // wrong
          use(value?.byteCount ?? 0)
        }
        try transaction.put([1], for: 2, in: numbers)  // right
      }
    """),
  Snippet(
    "a delete while a lent value is alive", error: "overlapping accesses to 'transaction'",
    """
      try environment.write { transaction in
        do {
          let value = try transaction.bytes(of: 1, in: numbers)
          try transaction.delete(1, in: numbers)  // wrong
          use(value?.byteCount ?? 0)
        }
        try transaction.delete(1, in: numbers)  // right
      }
    """),
  Snippet(
    "a put from the closure of a scan", error: "overlapping accesses to 'transaction'",
    """
      try environment.write { transaction in
        var last: UInt64 = 0
        try transaction.scan(numbers) { key, _ in
          last = try UInt64Codec.decode(key)
          try transaction.put([1], for: last + 1, in: numbers)  // wrong
          return .next
        }
        try transaction.put([1], for: last + 1, in: numbers)  // right
      }
    """),
  Snippet(
    "room for a value, filled after its closure", error: "'room'",
    """
      try environment.write { transaction in
        var kept = OutputRawSpan()  // wrong
        try transaction.put(byteCount: 8, for: 1, in: numbers) { room in
          kept = room  // wrong
          room.append(UInt64(7), as: UInt64.self)  // right
        }
      }
    """),
  Snippet(
    "the view of a lazy codec, kept beyond its transaction", error: "escapes its scope",
    """
      var kept: LazyCodec<TextCodec>.View?  // wrong
      var kept: LazyCodec<TextCodec>.Value?  // right
      try environment.read { transaction in
        kept = try transaction.view(of: 1, in: lazy)  // wrong
        kept = try transaction.value(of: 1, in: lazy)  // right
      }
      _ = try kept?.decoded()
    """),
  Snippet(
    "the view of packed records, kept beyond its transaction", error: "escapes its scope",
    """
      var kept: PackedRecords.View?  // wrong
      var kept: PackedRecords?  // right
      try environment.read { transaction in
        kept = try transaction.view(of: 1, in: packed)  // wrong
        kept = try transaction.value(of: 1, in: packed)  // right
      }
      use(kept?.count ?? 0)
    """),
  Snippet(
    "a packed record, kept beyond its transaction", error: "escapes its scope",
    """
      var kept = RawSpan()  // wrong
      var kept: [UInt8] = []  // right
      try environment.read { transaction in
        guard let view = try transaction.view(of: 1, in: packed) else { return }
        kept = try view.record(at: 0)  // wrong
        kept = try view.record(at: 0).copiedBytes()  // right
      }
      use(kept)  // wrong
      use(kept.count)  // right
    """),
  Snippet(
    "a put while a view is alive", error: "overlapping accesses to 'transaction'",
    """
      try environment.write { transaction in
        do {
          let view = try transaction.view(of: 1, in: packed)
          try transaction.put(PackedRecords(), for: 2, in: packed)  // wrong
          use(view?.count ?? 0)
        }
        try transaction.put(PackedRecords(), for: 2, in: packed)  // right
      }
    """),
]

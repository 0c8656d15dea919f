/// Transactions: lent to one synchronous closure on one thread, and to nobody else.
let transactions = [
  Snippet(
    "what a transaction is, kept", error: "escapes its scope",
    """
      var kept: TransactionToken?  // wrong
      var kept: UInt64?  // right
      try environment.read { transaction in
        kept = transaction.token  // wrong
        kept = transaction.identifier()  // right
      }
      _ = kept
    """),
  Snippet(
    "a read transaction, kept", error: "consum",
    """
      var kept: ReadTransaction?  // wrong
      var kept: UInt64?  // right
      try environment.read { transaction in
        kept = transaction  // wrong
        kept = transaction.identifier()  // right
      }
      _ = kept
    """),
  Snippet(
    "a read transaction, returned",
    error: "'read' requires that 'ReadTransaction' conform to 'Copyable'",
    """
      let kept = try environment.read { transaction -> ReadTransaction in  // wrong
      let kept = try environment.read { transaction in  // right
        transaction  // wrong
        transaction.identifier()  // right
      }
      _ = kept
    """),
  Snippet(
    "a read transaction, copied", error: "'transaction' is borrowed and cannot be consumed",
    """
      try environment.read { transaction in
        let other = transaction  // wrong
        use(Int(other.identifier()))  // wrong
        use(Int(transaction.identifier()))  // right
      }
    """),
  Snippet(
    "a read transaction, given to a task", error: "risks causing data races",
    """
      try environment.read { transaction in
        let identifier = transaction.identifier()
        Task { use(Int(transaction.identifier())) }  // wrong
        Task { use(Int(identifier)) }  // right
      }
    """),
  Snippet(
    "a read transaction, made by a client", error: "'ReadTransaction' initializer is inaccessible",
    or: "cannot convert value of type 'TransactionToken'",
    """
      try environment.read { transaction in
        let other = ReadTransaction(transaction.token)  // wrong
        _ = other.identifier()  // wrong
        _ = transaction.identifier()  // right
      }
    """),
  Snippet(
    "a write transaction, kept", error: "consuming",
    """
      var kept: WriteTransaction?  // wrong
      var kept: UInt64?  // right
      try environment.write { transaction in
        kept = transaction  // wrong
        kept = transaction.identifier()  // right
      }
      _ = kept?.identifier()  // wrong
      _ = kept  // right
    """),
  Snippet(
    "a write transaction, given to a task",
    error: "escaping closure captures 'inout' parameter 'transaction'",
    or: "risks causing data races",
    """
      try environment.write { transaction in
        try transaction.put([1], for: 1, in: numbers)
        Task { try transaction.put([2], for: 2, in: numbers) }  // wrong
        Task { use(2) }  // right
      }
    """),
  Snippet(
    "a read transaction across an await", error: "cannot pass function of type", isAsync: true,
    declarations: "private func upload(_ bytes: [UInt8]) async {}",
    """
      try environment.read { transaction in  // wrong
      let value = try environment.read { transaction in  // right
        let value = try transaction.value(of: 1, in: numbers)  // wrong
        try transaction.value(of: 1, in: numbers)  // right
        await upload(value ?? [])  // wrong
      }
      await upload(value ?? [])  // right
    """),
  Snippet(
    "a write transaction across an await", error: "cannot pass function of type", isAsync: true,
    declarations: "private func download() async -> [UInt8] { [1] }",
    """
      let bytes = await download()  // right
      try await environment.write { transaction in
        let bytes = await download()  // wrong
        try transaction.put(bytes, for: 1, in: numbers)
      }
    """),
  Snippet(
    "a write that blocks the thread of a task", error: "'async' but is not marked with 'await'",
    isAsync: true,
    """
      try environment.write { try $0.put([1], for: 1, in: numbers) }  // wrong
      try await environment.write { try $0.put([1], for: 1, in: numbers) }  // right
    """),
  Snippet(
    "a variable of the caller, changed by an async write that may run twice",
    error: "captured var 'count'", isAsync: true,
    """
      var count = 0
      try await environment.write { transaction in  // wrong
        count += try transaction.count(of: numbers)  // wrong
      }  // wrong
      count += try await environment.write { try $0.count(of: numbers) }  // right
      use(count)
    """),
  Snippet(
    "something unshareable, returned by an async write", error: "Sendable", isAsync: true,
    declarations: """
      private final class Answer {  // wrong
      private final class Answer: Sendable {  // right
        let count: Int
        init(_ count: Int) { self.count = count }
      }
      """,
    """
      let answer = try await environment.write { Answer(try $0.count(of: numbers)) }
      use(answer.count)
    """),
  Snippet(
    "a put into a snapshot", error: "'ReadTransaction' has no member 'put'",
    """
      try environment.read { transaction in  // wrong
      try environment.write { transaction in  // right
        try transaction.put([1], for: 1, in: numbers)
      }
    """),
  Snippet(
    "an environment that went past the registry",
    error: "'Environment' initializer is inaccessible",
    """
      let open = Environment.init  // wrong
      let open = Environment.open(at:configuration:)  // right
      _ = open
    """),
]

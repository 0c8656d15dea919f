public import LMDB
import Synchronization

/// Runs in the transaction that binds or adopts, so that an app saves the person's choice and its own
/// data with it.
///
/// It may run again and must have no effect outside the transaction. What it throws undoes the whole
/// call.
public typealias BindingClosure = @Sendable (inout WriteTransaction, AreaBinding) throws -> Void

/// What a ``BindingClosure`` is lent: the app's tables in the area that becomes the account's.
public struct AreaBinding: Sendable {
  /// The frozen area, when its content is being adopted into the area that the account has already:
  /// the app carries its own tables over. nil when the unowned area itself is bound, where they are.
  public let source: AdoptionSource?
  let tables: BindingTables

  /// One of the app's own tables in the area that is written, made on first use.
  /// - Parameter name: 1 to 200 bytes, as for ``Profile/table(_:key:value:)``.
  /// - Throws: `storage`. Its first use of a new table throws an error of the library's own: let it
  ///   pass, and the closure is run again with the table.
  public func table<K, V>(_ name: String, key: K.Type, value: V.Type) throws -> Table<K, V> {
    try tables.table(name, key: key, value: value)
  }
}

/// A frozen unowned area, readable while it is adopted.
public struct AdoptionSource: Sendable {
  let area: Area

  /// Lends a snapshot of it.
  public func read<R>(_ body: (borrowing ReadTransaction) throws -> R) throws -> R {
    try area.read(body)
  }

  /// One of the app's own tables in it; take it before ``read(_:)``.
  /// - Throws: `storage`.
  public func table<K, V>(_ name: String, key: K.Type, value: V.Type) throws -> Table<K, V> {
    try area.appTable(name, key: key, value: value)
  }
}

/// Opens tables for a closure that is inside a transaction, where LMDB can open none: the transaction
/// is given up, the table opened, and the closure run again.
final class BindingTables: Sendable {
  private struct Names {
    var ready: Set<String> = []
    var wanted: Set<String> = []
  }

  private struct TableWanted: Error {}

  private let area: Area
  private let names = Mutex(Names())

  init(_ area: Area) { self.area = area }

  func table<K, V>(_ name: String, key: K.Type, value: V.Type) throws -> Table<K, V> {
    let isReady = names.withLock { names in
      if !names.ready.contains(name) { names.wanted.insert(name) }
      return names.wanted.isEmpty
    }
    guard isReady else { throw TableWanted() }
    return try area.appTable(name, key: key, value: value)
  }

  /// Within the transaction, after the closure: whether it has met every table, also if it
  /// swallowed the error.
  func requireNoneWanted() throws {
    if names.withLock({ !$0.wanted.isEmpty }) { throw TableWanted() }
  }

  /// Runs a transaction with the closure in it, as often as it asks for one more table.
  func run(_ transaction: () throws -> Void) throws {
    while true {
      do {
        return try transaction()
      } catch {
        let wanted = names.withLock { names in
          defer { names.wanted = [] }
          return names.wanted
        }
        guard !wanted.isEmpty else { throw error }
        for name in wanted {
          _ = try area.appTable(name, key: BytesCodec.self, value: BytesCodec.self)
        }
        names.withLock { $0.ready.formUnion(wanted) }
      }
    }
  }
}

internal import CLMDB

/// A named table of one environment, with the codecs of its keys and values. Cheap to copy.
///
/// Obtained from ``Environment/table(_:key:value:)``. Used with a transaction of another
/// environment it traps: its number means another table there. Corresponds to `MDB_dbi`.
public struct Table<Key: KeyCodec, Value: ValueCodec>: Sendable {
  /// The table's name within its environment.
  public var name: String { base.name }
  @usableFromInline let base: TableBase
}

/// What a table is without its codecs.
@usableFromInline
struct TableBase: Sendable {
  @usableFromInline let name: String
  let handle: UInt32
  let environment: UInt64
  /// One key may have several values there (`MDB_DUPSORT`).
  var hasDuplicates = false
}

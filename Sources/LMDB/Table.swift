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
}

/// Which keys a scan visits, in the order of their bytes.
public enum KeyRange<Key> {
  /// Every key.
  case all
  /// That key and all behind it.
  case from(Key)
  /// All keys behind that one.
  case after(Key)
  /// From the first key up to and with the last.
  case through(Key, Key)
  /// Every key whose bytes begin with that key's bytes.
  case prefix(Key)
}

/// Whether a scan goes on.
public enum ScanStep: Sendable {
  case next
  case stop
}

extension KeyRange: Sendable where Key: Sendable {}

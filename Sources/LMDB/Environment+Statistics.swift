internal import CLMDB

extension Environment {
  /// Sizes and counts of an environment that cost nothing to ask for.
  public struct Statistics: Sendable, Hashable {
    /// The map's size, in bytes.
    public let mapByteCount: Int
    /// The size up to which the map grows by itself, in bytes.
    public let mapByteCountMax: Int
    /// The size of a page, in bytes: that of the machine's memory.
    public let pageByteCount: Int
    /// The number of the last page that was ever used; pages 0 and 1 are the meta pages.
    public let lastPage: Int
    /// Bytes of the data file up to and with ``lastPage``. Free pages among them count.
    public let usedByteCount: Int
    /// The number of the last committed transaction.
    public let lastTransaction: UInt64
    /// The most simultaneous readers of all processes.
    public let readerCountMax: Int
    /// Reader slots that were ever used at once; see ``Environment/readers()`` for those in use.
    public let readerSlotCount: Int
  }

  /// Sizes and counts of the whole environment.
  /// - Throws: `closed`, `broken`, `forked`.
  /// - Cost: two calls of LMDB, no disk. Corresponds to `mdb_env_info` and `mdb_env_stat`.
  public func statistics() throws(LMDBError) -> Statistics {
    try inside("statistics") { numbers() }
  }

  /// The same for callers that are inside the gate or have the turn to write.
  func numbers() -> Statistics {
    var info = unsafe MDB_envinfo()
    var stat = MDB_stat()
    _ = unsafe mdb_env_info(handle, &info)
    _ = unsafe mdb_env_stat(handle, &stat)
    return unsafe Statistics(
      mapByteCount: info.me_mapsize, mapByteCountMax: configuration.mapSizeByteCountMax,
      pageByteCount: Int(stat.ms_psize), lastPage: info.me_last_pgno,
      usedByteCount: (info.me_last_pgno + 1) * Int(stat.ms_psize),
      lastTransaction: UInt64(info.me_last_txnid), readerCountMax: Int(info.me_maxreaders),
      readerSlotCount: Int(info.me_numreaders))
  }
}

/// What a write is for, which decides how much room it may use.
public enum WritePurpose: Sendable {
  /// It adds or changes data: refused with `mapFull` at the ceiling, and with `diskFull` once the
  /// file system has no room. The default. One that only deletes is treated as draining then.
  case storing

  /// It frees more than it stores: acknowledges, settles, deletes.
  ///
  /// LMDB copies every page before it changes it, so that deleting needs room, too. A draining write
  /// may use room that no other write gets: 1/16 of the ceiling, at least 1 MiB, beyond it
  /// (``Environment/Configuration/mapSizeByteCountMax``); and, on a full disk, what is kept ready
  /// behind the data (``Environment/Configuration/fileReserveByteCountMax``). It should touch few
  /// pages, some hundred records at most, and may then be repeated until all is drained: a page that
  /// one write frees serves the second write after it, unless a reader still sees it.
  case draining
}

internal import CLMDB

extension Environment {
  /// Tells the process's allocator to keep blocks of 1 MiB and more out of its heap, for good: see
  /// ``EnvironmentPool/Configuration/keepsListsOutOfHeap``. For who opens many without a pool.
  package static func keepListsOutOfHeap() { lmdb_set_mmap_threshold(1 << 20) }
}

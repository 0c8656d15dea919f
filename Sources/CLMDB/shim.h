#pragma once
#include <lmdb.h>
#include "files.h"
#include "prefetch.h"

#ifdef __linux__
#include <malloc.h>
#endif

// Keeps blocks of that size and more out of the heap, with glibc; elsewhere nothing.
static inline void lmdb_set_mmap_threshold(int byte_count) {
#ifdef M_MMAP_THRESHOLD
  mallopt(M_MMAP_THRESHOLD, byte_count);
#else
  (void)byte_count;
#endif
}

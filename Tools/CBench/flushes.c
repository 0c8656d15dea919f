// Counts what this process writes to files and how often it waits for a disk, by standing before the
// C library's functions.
#include "CBench.h"
#include "interposing.h"

#if defined(CBENCH_INTERPOSES)
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static atomic_int is_counting;
static atomic_uint_least64_t written, flushes;

static int counts(void) { return atomic_load_explicit(&is_counting, memory_order_relaxed); }

static void flushed(void) { atomic_fetch_add_explicit(&flushes, 1, memory_order_relaxed); }

// LMDB writes its meta pages through a descriptor of which each write waits for the disk.
static ssize_t wrote(int file, ssize_t size) {
  if (size > 0 && counts()) {
    atomic_fetch_add_explicit(&written, (uint64_t)size, memory_order_relaxed);
    if (fcntl(file, F_GETFL) & O_DSYNC) flushed();
  }
  return size;
}

ssize_t pwrite(int file, const void *bytes, size_t size, off_t offset) {
  return wrote(file, syscall(SYS_pwrite64, file, bytes, size, offset));
}

ssize_t writev(int file, const struct iovec *parts, int count) {
  return wrote(file, syscall(SYS_writev, file, parts, count));
}

int fdatasync(int file) {
  if (counts()) flushed();
  return (int)syscall(SYS_fdatasync, file);
}

int fsync(int file) {
  if (counts()) flushed();
  return (int)syscall(SYS_fsync, file);
}

int msync(void *address, size_t size, int flags) {
  if (counts()) flushed();
  return (int)syscall(SYS_msync, address, size, flags);
}

int cbench_can_count_writes(void) { return 1; }

void cbench_start_counting_writes(void) {
  atomic_store(&written, 0);
  atomic_store(&flushes, 0);
  atomic_store(&is_counting, 1);
}

struct cbench_writes cbench_stop_counting_writes(void) {
  atomic_store(&is_counting, 0);
  return (struct cbench_writes){atomic_load(&written), atomic_load(&flushes)};
}
#else
int cbench_can_count_writes(void) { return 0; }
void cbench_start_counting_writes(void) {}
struct cbench_writes cbench_stop_counting_writes(void) { return (struct cbench_writes){0, 0}; }
#endif

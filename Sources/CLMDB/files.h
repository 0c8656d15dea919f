#pragma once
// Calls on files that Linux has and that a Swift module cannot make by itself: the C library hides
// them unless GNU's extensions are asked for. Elsewhere they do nothing and say that all is well.
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/types.h>
#if defined(__linux__)
#include <sys/vfs.h>
#elif defined(__APPLE__)
#include <sys/mount.h>
#include <sys/param.h>
#endif

#if defined(__linux__)
#include <linux/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int fallocate(int descriptor, int mode, off_t offset, off_t byte_count);
enum { clmdb_keep_size = 1, clmdb_ofd_getlk = 36, clmdb_ofd_setlk = 37 };
#endif

// What the file system says of a file.
struct clmdb_file_numbers {
  uint64_t device, inode;
  int64_t byte_count, allocated_byte_count;
  uint32_t mode;
};

#if defined(__linux__)
// Asks for a path, or for an open file with an empty one. 0, or -1 with the reason in errno.
//
// `stat` would do, but it asks for the times, too: a kernel that was asked for them gives the next
// change of the file a stamp of its own and writes it to the file's inode.
static inline int clmdb_ask_file(
    int descriptor, const char *path, struct clmdb_file_numbers *numbers) {
  struct statx found;
  unsigned wanted = STATX_TYPE | STATX_MODE | STATX_INO | STATX_SIZE | STATX_BLOCKS;
  int flags = path[0] ? 0 : 0x1000;  // AT_EMPTY_PATH
  if (syscall(SYS_statx, descriptor, path, flags, wanted, &found) != 0) return -1;
  numbers->device = (uint64_t)found.stx_dev_major << 32 | found.stx_dev_minor;
  numbers->inode = found.stx_ino;
  numbers->byte_count = (int64_t)found.stx_size;
  numbers->allocated_byte_count = (int64_t)found.stx_blocks * 512;
  numbers->mode = found.stx_mode;
  return 0;
}
#else
#include <sys/stat.h>

static inline int clmdb_ask_file(
    int descriptor, const char *path, struct clmdb_file_numbers *numbers) {
  struct stat found;
  if ((path[0] ? stat(path, &found) : fstat(descriptor, &found)) != 0) return -1;
  numbers->device = (uint64_t)found.st_dev;
  numbers->inode = (uint64_t)found.st_ino;
  numbers->byte_count = (int64_t)found.st_size;
  numbers->allocated_byte_count = (int64_t)found.st_blocks * 512;
  numbers->mode = (uint32_t)found.st_mode;
  return 0;
}
#endif

// Gives the first bytes of a file their place on the disk; its size stays. 0, or an errno.
static inline int clmdb_reserve(int descriptor, int64_t byte_count) {
#if defined(__linux__)
  while (fallocate(descriptor, clmdb_keep_size, 0, byte_count) != 0)
    if (errno != EINTR) return errno;
#else
  (void)descriptor, (void)byte_count;
#endif
  return 0;
}

// Takes a shared lock on one byte, which belongs to the open file and ends with it. 0, or an errno.
static inline int clmdb_claim(int descriptor, int64_t place) {
#if defined(__linux__)
  struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = place, .l_len = 1};
  if (fcntl(descriptor, clmdb_ofd_setlk, &lock) != 0) return errno;
#else
  (void)descriptor, (void)place;
#endif
  return 0;
}

// Gives up all such locks of this open file on some bytes.
static inline void clmdb_disclaim(int descriptor, int64_t first, int64_t byte_count) {
#if defined(__linux__)
  struct flock lock = {
      .l_type = F_UNLCK, .l_whence = SEEK_SET, .l_start = first, .l_len = byte_count};
  (void)fcntl(descriptor, clmdb_ofd_setlk, &lock);
#else
  (void)descriptor, (void)first, (void)byte_count;
#endif
}

// Whether another open file has such a lock on any of some bytes.
static inline int clmdb_is_claimed(int descriptor, int64_t first, int64_t byte_count) {
#if defined(__linux__)
  if (byte_count <= 0) return 0;
  struct flock lock = {
      .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = first, .l_len = byte_count};
  return fcntl(descriptor, clmdb_ofd_getlk, &lock) == 0 && lock.l_type != F_UNLCK;
#else
  (void)descriptor, (void)first, (void)byte_count;
  return 0;
#endif
}

// The number that Linux gives the kind of file system of a path, 0 where there is none. -1 and an
// errno when it cannot be told. Elsewhere -2 if the system says that it is remote, else 0.
static inline int64_t clmdb_file_system(const char *path) {
#if defined(__linux__)
  struct statfs numbers;
  if (statfs(path, &numbers) != 0) return -1;
  return (int64_t)(uint32_t)numbers.f_type;
#elif defined(__APPLE__)
  struct statfs numbers;
  if (statfs(path, &numbers) != 0) return -1;
  return (numbers.f_flags & MNT_LOCAL) ? 0 : -2;
#else
  (void)path;
  return 0;
#endif
}

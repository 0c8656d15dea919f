// Stands before those functions of the C library that change files, to count them.
#define _GNU_SOURCE
#include "CCrashSteps.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define STEPS_SANITIZED 1
#endif
#endif
#if defined(__GLIBC__) && !defined(STEPS_SANITIZED)
#define STEPS_SEE_CALLS 1
#endif

static atomic_int is_counting;
static atomic_ulong count, place;
static enum crash_steps_action action;
static char ballast[4096];

static void say(const char *name, const char *path, unsigned long number) {
  // The last two parts tell which file it is; what comes before has random names.
  const char *end = path + strlen(path), *part = end;
  for (int slashes = 0; part > path; part--)
    if (*part == '/' && ++slashes == 2) break;
  char line[600];
  int size = snprintf(line, sizeof line, "step %lu %s %s\n", number, name, part);
  if (size > (int)sizeof line) size = sizeof line;
  syscall(SYS_write, 1, line, size);
}

void crash_steps_fill_disk(const char *file) {
  int descriptor = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (descriptor < 0) return;
  static const char zeros[1 << 16];
  for (size_t size = sizeof zeros; size > 0; size /= 16)
    while (syscall(SYS_write, descriptor, zeros, size) == (long)size) {
    }
  close(descriptor);
}

static void reach(const char *name, const char *path) {
  if (!atomic_load(&is_counting)) return;
  int saved = errno;
  unsigned long number = atomic_fetch_add(&count, 1) + 1;
  if (action == crash_steps_count) {
    say(name, path, number);
  } else if (number == atomic_load(&place)) {
    say(name, path, number);
    if (action == crash_steps_kill) {
      kill(getpid(), SIGKILL);
      for (;;) pause();
    }
    crash_steps_fill_disk(ballast);
  }
  errno = saved;
}

void crash_steps_begin(unsigned long at, enum crash_steps_action what, const char *file) {
  action = what;
  atomic_store(&place, at);
  atomic_store(&count, 0);
  snprintf(ballast, sizeof ballast, "%s", file);
  atomic_store(&is_counting, 1);
}

void crash_steps_reach(const char *name) { reach(name, ""); }

unsigned long crash_steps_end(void) {
  atomic_store(&is_counting, 0);
  return atomic_load(&count);
}

#if defined(STEPS_SEE_CALLS)
int crash_steps_sees_calls(void) { return 1; }

// Pipes and sockets are no part of what is on disk.
static void reach_file(const char *name, int file) {
  if (!atomic_load(&is_counting)) return;
  struct stat numbers;
  int saved = errno;
  int is_file = fstat(file, &numbers) == 0 && (S_ISREG(numbers.st_mode) || S_ISDIR(numbers.st_mode));
  if (is_file) {
    char link[64], path[512];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t size = readlink(link, path, sizeof path - 1);
    path[size < 0 ? 0 : size] = 0;
    reach(name, path);
  }
  errno = saved;
}

ssize_t write(int file, const void *bytes, size_t size) {
  reach_file("write", file);
  return syscall(SYS_write, file, bytes, size);
}

ssize_t pwrite(int file, const void *bytes, size_t size, off_t offset) {
  reach_file("pwrite", file);
  return syscall(SYS_pwrite64, file, bytes, size, offset);
}

ssize_t pwrite64(int file, const void *bytes, size_t size, off64_t offset) {
  reach_file("pwrite", file);
  return syscall(SYS_pwrite64, file, bytes, size, offset);
}

ssize_t writev(int file, const struct iovec *parts, int number) {
  reach_file("writev", file);
  return syscall(SYS_writev, file, parts, number);
}

ssize_t pwritev(int file, const struct iovec *parts, int number, off_t offset) {
  reach_file("pwritev", file);
  return syscall(SYS_pwritev, file, parts, number, offset, 0);
}

// Flushing changes nothing that another process would see.

int ftruncate(int file, off_t size) {
  reach_file("ftruncate", file);
  return (int)syscall(SYS_ftruncate, file, size);
}

int fallocate(int file, int mode, off_t offset, off_t size) {
  reach_file("fallocate", file);
  return (int)syscall(SYS_fallocate, file, mode, offset, size);
}

int mkdir(const char *path, mode_t mode) {
  reach("mkdir", path);
  return (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}

int rename(const char *old, const char *new) {
  reach("rename", old);
  return (int)syscall(SYS_renameat2, AT_FDCWD, old, AT_FDCWD, new, 0);
}

int unlink(const char *path) {
  reach("unlink", path);
  return (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

int unlinkat(int directory, const char *path, int flags) {
  reach("unlink", path);
  return (int)syscall(SYS_unlinkat, directory, path, flags);
}

int rmdir(const char *path) {
  reach("rmdir", path);
  return (int)syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR);
}
#else
int crash_steps_sees_calls(void) { return 0; }
#endif

// The files of devices: who dies leaves everything as it is.
#define _GNU_SOURCE
#include "internal.h"

#if defined(MACHINE_WORKS)
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

struct device {
  char directory[PATH_MAX];
  size_t length;  // 0: there is none
  uint64_t steps_left;
  bool dies_after, is_dead;
  const char *last_step;
};

enum { descriptor_max = 4096 };

static struct device devices[machine_device_max];
// Whose file a descriptor is: a device, counted from 1; or that it is the system's source of randomness.
enum { random_source = -1 };
static signed char owners[descriptor_max];
static uint64_t step_count, commit_count;
static bool looks;

void machine_add_device(int device, const char *directory) {
  struct device *added = &devices[device];
  memset(added, 0, sizeof *added);
  added->length = strlen(directory);
  if (added->length >= PATH_MAX) abort();
  memcpy(added->directory, directory, added->length);
}

void machine_plan_death(int device, uint64_t steps, bool after) {
  devices[device].steps_left = steps;
  devices[device].dies_after = after;
}

void machine_kill(int device) {
  devices[device].is_dead = true;
  devices[device].steps_left = 0;
}

void machine_revive(int device) { devices[device].is_dead = false; }
bool machine_is_dead(int device) { return devices[device].is_dead; }
const char *machine_last_step(int device) {
  return devices[device].last_step ? devices[device].last_step : "nothing";
}
uint64_t machine_step_count(void) { return step_count; }
uint64_t machine_commit_count(void) { return commit_count; }
void machine_look(bool is_looking) { looks = is_looking; }

int machine_device_of(const char *path) {
  if (!path) return -1;
  for (int device = 0; device < machine_device_max; device++) {
    size_t length = devices[device].length;
    if (length && strncmp(path, devices[device].directory, length) == 0 &&
        (path[length] == '/' || path[length] == 0))
      return device;
  }
  return -1;
}

int machine_step(int device, const char *name) {
  if (device < 0) return 0;
  struct device *stepping = &devices[device];
  if (!stepping->is_dead && !looks) {
    step_count++;
    stepping->last_step = name;
    bool is_last = stepping->steps_left == 1;
    bool goes_on = is_last && stepping->dies_after && strcmp(name, "commit") == 0;
    if (stepping->steps_left > 0 && !goes_on) stepping->steps_left--;
    if (is_last && !goes_on) machine_kill(device);
  }
  if (!stepping->is_dead) return 0;
  errno = EIO;
  return -1;
}

void machine_done(int device, const char *name) {
  if (device < 0 || looks) return;
  commit_count++;
  if (devices[device].steps_left == 1 && devices[device].dies_after) {
    devices[device].last_step = name;
    machine_kill(device);
  }
}

// MARK: Names

static int owner(int descriptor) {
  bool has_owner = descriptor >= 0 && descriptor < descriptor_max && owners[descriptor] > 0;
  return has_owner ? owners[descriptor] - 1 : -1;
}

int open(const char *path, int flags, ...) {
  mode_t mode = 0;
  if (flags & (O_CREAT | O_TMPFILE)) {
    va_list rest;
    va_start(rest, flags);
    mode = va_arg(rest, mode_t);
    va_end(rest);
  }
  int device = machine_is_on ? machine_device_of(path) : -1;
  // What is there is opened without a trace; what is made is a step.
  if (flags & O_CREAT && device >= 0 && access(path, F_OK) != 0 && machine_step(device, "create"))
    return -1;
  int descriptor = (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
  if (descriptor >= 0 && descriptor < descriptor_max)
    owners[descriptor] =
        strcmp(path, "/dev/urandom") == 0 ? random_source : (signed char)(device + 1);
  return descriptor;
}

int close(int descriptor) {
  if (descriptor >= 0 && descriptor < descriptor_max) owners[descriptor] = 0;
  return (int)syscall(SYS_close, descriptor);
}

ssize_t read(int descriptor, void *bytes, size_t count) {
  bool is_random =
      descriptor >= 0 && descriptor < descriptor_max && owners[descriptor] == random_source;
  if (is_random) return getrandom(bytes, count, 0);
  return syscall(SYS_read, descriptor, bytes, count);
}

#define STEP(name, path)                                                            \
  if (machine_is_on && machine_step(machine_device_of(path), name)) return -1

int mkdir(const char *path, mode_t mode) {
  if (machine_is_on && access(path, F_OK) != 0) {
    STEP("mkdir", path);
  }
  return (int)syscall(SYS_mkdir, path, mode);
}

int rmdir(const char *path) {
  STEP("rmdir", path);
  return (int)syscall(SYS_rmdir, path);
}

int unlink(const char *path) {
  if (machine_is_on && access(path, F_OK) == 0) {
    STEP("unlink", path);
  }
  return (int)syscall(SYS_unlink, path);
}

int link(const char *old, const char *new) {
  STEP("link", new);
  return (int)syscall(SYS_link, old, new);
}

int rename(const char *old, const char *new) {
  STEP("rename", new);
  return (int)syscall(SYS_rename, old, new);
}

// MARK: Contents

// Of the dead nothing is written. What the living write is no step of its own: before a commit's end
// nobody would find it.
static bool may_write(int descriptor) {
  int device = machine_is_on ? owner(descriptor) : -1;
  if (device < 0 || !devices[device].is_dead) return true;
  errno = EIO;
  return false;
}

void machine_note_write(int descriptor, const void *bytes, size_t count);

ssize_t pwrite(int descriptor, const void *bytes, size_t count, off_t offset) {
  if (!may_write(descriptor)) return -1;
  if (machine_is_on) machine_note_write(descriptor, bytes, count);
  return syscall(SYS_pwrite64, descriptor, bytes, count, offset);
}

ssize_t writev(int descriptor, const struct iovec *parts, int count) {
  if (!may_write(descriptor)) return -1;
  for (int index = 0; machine_is_on && index < count; index++)
    machine_note_write(descriptor, parts[index].iov_base, parts[index].iov_len);
  return syscall(SYS_writev, descriptor, parts, count);
}

ssize_t write(int descriptor, const void *bytes, size_t count) {
  if (!may_write(descriptor)) return -1;
  if (machine_is_on) machine_note_write(descriptor, bytes, count);
  return syscall(SYS_write, descriptor, bytes, count);
}

int ftruncate(int descriptor, off_t size) {
  if (!may_write(descriptor)) return -1;
  return (int)syscall(SYS_ftruncate, descriptor, size);
}

// A disk that keeps what it was given: nothing is lost but what was not written.
int fsync(int descriptor) { return machine_is_on ? 0 : (int)syscall(SYS_fsync, descriptor); }
int fdatasync(int descriptor) {
  return machine_is_on ? 0 : (int)syscall(SYS_fdatasync, descriptor);
}

// On one thread nobody would let go of a lock that is waited for.
int flock(int descriptor, int operation) {
  if (!machine_is_on || operation & (LOCK_NB | LOCK_UN))
    return (int)syscall(SYS_flock, descriptor, operation);
  int result = (int)syscall(SYS_flock, descriptor, operation | LOCK_NB);
  if (result == 0) return 0;
  machine_stand_still("a lock was waited for that nobody would let go of");
  abort();
}
#else
void machine_add_device(int device, const char *directory) { (void)device, (void)directory; }
void machine_plan_death(int device, uint64_t steps, bool after) {
  (void)device, (void)steps, (void)after;
}
void machine_kill(int device) { (void)device; }
void machine_revive(int device) { (void)device; }
bool machine_is_dead(int device) { return device < 0; }
const char *machine_last_step(int device) {
  (void)device;
  return "nothing";
}
uint64_t machine_step_count(void) { return 0; }
uint64_t machine_commit_count(void) { return 0; }
void machine_look(bool is_looking) { (void)is_looking; }
#endif

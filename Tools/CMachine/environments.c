// liblmdb: begins, commits, and what lies in the pages that are written.
#define _GNU_SOURCE
#include "internal.h"

#if defined(MACHINE_WORKS)
#include <errno.h>
#include <limits.h>
#include <lmdb.h>
#include <string.h>

enum { open_max = 1024, write_max = 512 };

// Environments that are open, and transactions that write and are nobody's children.
static struct environment {
  MDB_env *handle;
  int device;
} environments[open_max];
static size_t environment_count;

static struct transaction {
  MDB_txn *handle;
  int device;
} transactions[64];
static size_t transaction_count;

// What was found in writes since it was last asked, by directory.
static struct written {
  char directory[PATH_MAX];
  struct machine_canaries found;
} written[write_max];
static size_t written_count;
// Where a descriptor's file lies.
static char *places[4096];

static int device_of(MDB_env *environment) {
  for (size_t index = 0; index < environment_count; index++)
    if (environments[index].handle == environment) return environments[index].device;
  return -1;
}

int machine_open_count(int device) {
  int count = 0;
  for (size_t index = 0; index < environment_count; index++)
    count += environments[index].device == device;
  return count;
}

int mdb_env_open(MDB_env *environment, const char *path, unsigned flags, mdb_mode_t mode) {
  REAL(mdb_env_open);
  int device = machine_is_on ? machine_device_of(path) : -1;
  bool makes = flags & MDB_NOSUBDIR;
  if (device >= 0 && (makes ? machine_step(device, "make") : machine_is_dead(device))) return EIO;
  int result = real(environment, path, flags, mode);
  if (result != 0 || device < 0) return result;
  if (environment_count == open_max) abort();
  environments[environment_count++] = (struct environment){environment, device};
  int descriptor;
  if (mdb_env_get_fd(environment, &descriptor) == 0 && descriptor < 4096) {
    free(places[descriptor]);
    places[descriptor] = strdup(path);
  }
  return 0;
}

void mdb_env_close(MDB_env *environment) {
  REAL(mdb_env_close);
  for (size_t index = 0; index < environment_count; index++)
    if (environments[index].handle == environment) {
      int descriptor;
      if (mdb_env_get_fd(environment, &descriptor) == 0 && descriptor < 4096) {
        free(places[descriptor]);
        places[descriptor] = NULL;
      }
      environments[index] = environments[--environment_count];
      break;
    }
  real(environment);
}

int mdb_txn_begin(MDB_env *environment, MDB_txn *parent, unsigned flags, MDB_txn **created) {
  REAL(mdb_txn_begin);
  int device = machine_is_on && !parent && !(flags & MDB_RDONLY) ? device_of(environment) : -1;
  if (device >= 0 && machine_is_dead(device)) return EIO;
  int result = real(environment, parent, flags, created);
  if (result == 0 && device >= 0) {
    if (transaction_count == sizeof transactions / sizeof *transactions) abort();
    transactions[transaction_count++] = (struct transaction){*created, device};
  }
  return result;
}

// Takes a transaction out; -1 when it is none of those.
static int end(MDB_txn *transaction) {
  for (size_t index = 0; index < transaction_count; index++)
    if (transactions[index].handle == transaction) {
      int device = transactions[index].device;
      transactions[index] = transactions[--transaction_count];
      return device;
    }
  return -1;
}

int mdb_txn_commit(MDB_txn *transaction) {
  REAL(mdb_txn_commit);
  int device = end(transaction);
  if (machine_step(device, "commit")) {
    // It ends as a commit does that could not write.
    mdb_txn_abort(transaction);
    return EIO;
  }
  int result = real(transaction);
  if (result == 0) machine_done(device, "committed");
  return result;
}

void mdb_txn_abort(MDB_txn *transaction) {
  REAL(mdb_txn_abort);
  end(transaction);
  real(transaction);
}

// MARK: Canaries

static const char mark[] = "~kanarie~";
enum { mark_length = sizeof mark - 1 };

static int digit(unsigned char byte) {
  if (byte >= '0' && byte <= '9') return byte - '0';
  if (byte >= 'a' && byte <= 'f') return byte - 'a' + 10;
  return -1;
}

struct machine_canaries machine_find_canaries(const void *bytes, size_t count) {
  struct machine_canaries found = {{0}};
  const unsigned char *next = bytes, *end = next + count;
  while ((next = memmem(next, (size_t)(end - next), mark, mark_length))) {
    next += mark_length;
    if (end - next < 3) break;
    int high = digit(next[0]), low = digit(next[1]);
    // To its end: in a page's free space something else may begin in the middle of what was there.
    if (high >= 0 && low >= 0 && next[2] == '~') found.words[high / 4] |= 1ULL << (16 * (high % 4) + low);
  }
  return found;
}

void machine_note_write(int descriptor, const void *bytes, size_t count) {
  if (descriptor < 0 || descriptor >= 4096 || !places[descriptor]) return;
  struct machine_canaries found = machine_find_canaries(bytes, count);
  if (!(found.words[0] | found.words[1] | found.words[2] | found.words[3])) return;
  size_t index = 0;
  while (index < written_count && strcmp(written[index].directory, places[descriptor]) != 0) index++;
  if (index == write_max) abort();
  if (index == written_count) {
    memset(&written[written_count], 0, sizeof *written);
    strncpy(written[written_count++].directory, places[descriptor], PATH_MAX - 1);
  }
  for (int word = 0; word < 4; word++) written[index].found.words[word] |= found.words[word];
}

bool machine_next_writes(const char **directory, struct machine_canaries *found) {
  if (written_count == 0) return false;
  written_count--;
  *directory = written[written_count].directory;
  *found = written[written_count].found;
  return true;
}
#else
int machine_open_count(int device) { return device < 0; }
struct machine_canaries machine_find_canaries(const void *bytes, size_t count) {
  (void)bytes, (void)count;
  return (struct machine_canaries){{0}};
}
bool machine_next_writes(const char **directory, struct machine_canaries *found) {
  (void)directory, (void)found;
  return false;
}
#endif

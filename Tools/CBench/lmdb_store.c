#include "lmdb_store.h"

#include <stdlib.h>

#include "../../Sources/CLMDB/prefetch.h"

const char *cbench_lmdb_version(void) { return mdb_version(NULL, NULL, NULL); }
const char *cbench_lmdb_message(int code) { return mdb_strerror(code); }

// The flags, sizes and limits are those that the Swift module is given or has by default.
static int open_env_with(
    const char *directory, size_t map_size, unsigned flags, MDB_env **env) {
  int code = mdb_env_create(env);
  if (code != 0) return code;
  if ((code = mdb_env_set_mapsize(*env, map_size)) != 0 ||
      (code = mdb_env_set_maxdbs(*env, 32)) != 0 ||
      (code = mdb_env_set_maxreaders(*env, 1024)) != 0 ||
      (code = mdb_env_open(*env, directory, MDB_NOTLS | flags, 0600)) != 0) {
    mdb_env_close(*env);
    *env = NULL;
  }
  return code;
}

static int open_env(const char *directory, size_t map_size, MDB_env **env) {
  return open_env_with(directory, map_size, 0, env);
}

static int open_table(MDB_env *env, unsigned transaction, unsigned table, MDB_dbi *records) {
  MDB_txn *txn;
  int code = mdb_txn_begin(env, NULL, transaction, &txn);
  if (code != 0) return code;
  code = mdb_dbi_open(txn, "records", table, records);
  if (code != 0) {
    mdb_txn_abort(txn);
    return code;
  }
  return mdb_txn_commit(txn);
}

static struct cbench_lmdb *open_store(
    const char *directory, size_t map_size, unsigned flags, int *code) {
  struct cbench_lmdb *store = calloc(1, sizeof *store);
  if (!store) abort();
  *code = open_env_with(directory, map_size, flags, &store->env);
  if (*code == 0) *code = open_table(store->env, 0, MDB_CREATE, &store->records);
  if (*code == 0) *code = mdb_txn_begin(store->env, NULL, MDB_RDONLY, &store->reader);
  if (*code != 0) {
    cbench_lmdb_close(store);
    return NULL;
  }
  mdb_txn_reset(store->reader);
  return store;
}

struct cbench_lmdb *cbench_lmdb_open(const char *directory, size_t map_size, int *code) {
  return open_store(directory, map_size, 0, code);
}

struct cbench_lmdb *cbench_lmdb_open_unsynced(
    const char *directory, size_t map_size, int *code) {
  return open_store(directory, map_size, MDB_NOSYNC, code);
}

void cbench_lmdb_close(struct cbench_lmdb *store) {
  if (store->cursor) mdb_cursor_close(store->cursor);
  if (store->scout) mdb_cursor_close(store->scout);
  if (store->reader) mdb_txn_abort(store->reader);
  if (store->env) mdb_env_close(store->env);
  free(store);
}

struct cbench_pass cbench_lmdb_apply(
    struct cbench_lmdb *store, const struct cbench_records *records, const uint32_t *order,
    size_t page) {
  struct cbench_pass pass = {0};
  uint64_t start = cbench_now();
  for (size_t next = 0; next < records->count;) {
    MDB_txn *txn;
    MDB_cursor *cursor;
    CBENCH_TRY(mdb_txn_begin(store->env, NULL, 0, &txn));
    CBENCH_TRY(mdb_cursor_open(txn, store->records, &cursor));
    for (size_t in_page = 0; in_page < page && next < records->count; in_page++, next++) {
      MDB_val key = cbench_key(records, order[next]), value = cbench_value(records, order[next]);
      CBENCH_TRY(mdb_cursor_put(cursor, &key, &value, 0));
      pass.operations++;
    }
    mdb_cursor_close(cursor);
    CBENCH_TRY(mdb_txn_commit(txn));
    pass.commits++;
  }
  pass.nanoseconds = cbench_now() - start;
  return pass;
}

// Puts the cursor behind a key, or on the first one.
static int place(MDB_cursor *cursor, MDB_val *key, MDB_val *value, const uint8_t *last) {
  if (!last) return mdb_cursor_get(cursor, key, value, MDB_FIRST);
  *key = (MDB_val){cbench_key_size, (void *)last};
  int code = mdb_cursor_get(cursor, key, value, MDB_SET_RANGE);
  if (code == 0 && key->mv_size == cbench_key_size &&
      memcmp(key->mv_data, last, cbench_key_size) == 0)
    code = mdb_cursor_get(cursor, key, value, MDB_NEXT);
  return code;
}

struct cbench_pass cbench_lmdb_scan(
    struct cbench_lmdb *store, size_t page, int passes, int prefetches) {
  struct cbench_pass pass = {0};
  MDB_stat numbers;
  uint64_t start = cbench_now();
  CBENCH_TRY(mdb_env_stat(store->env, &numbers));
  for (int number = 0; number < passes; number++) {
    uint8_t last[cbench_key_size];
    int is_begun = 0, code = 0;
    while (code == 0) {
      CBENCH_TRY(mdb_txn_renew(store->reader));
      if (store->cursor)
        CBENCH_TRY(mdb_cursor_renew(store->reader, store->cursor));
      else
        CBENCH_TRY(mdb_cursor_open(store->reader, store->records, &store->cursor));
      MDB_val key, value;
      code = place(store->cursor, &key, &value, is_begun ? last : NULL);
      size_t left = page;
      if (prefetches) {
        struct clmdb_prefetcher prefetcher = {
            .scout = store->scout, .page_size = numbers.ms_psize};
        if (store->scout) CBENCH_TRY(mdb_cursor_renew(store->reader, store->scout));
        while (code == 0) {
          clmdb_prefetch(&prefetcher, store->cursor, key.mv_data);
          pass.digest ^= cbench_touch(value.mv_data, value.mv_size);
          pass.operations++;
          if (--left == 0) break;
          code = mdb_cursor_get(store->cursor, &key, &value, MDB_NEXT);
        }
        store->scout = prefetcher.scout;
      } else {
        while (code == 0) {
          pass.digest ^= cbench_touch(value.mv_data, value.mv_size);
          pass.operations++;
          if (--left == 0) break;
          code = mdb_cursor_get(store->cursor, &key, &value, MDB_NEXT);
        }
      }
      if (code == 0) {
        memcpy(last, key.mv_data, cbench_key_size);
        is_begun = 1;
      }
      mdb_txn_reset(store->reader);
    }
    if (code != MDB_NOTFOUND) {
      pass.code = code;
      pass.call = "mdb_cursor_get";
      return pass;
    }
  }
  pass.nanoseconds = cbench_now() - start;
  return pass;
}

struct cbench_pass cbench_lmdb_get(
    struct cbench_lmdb *store, const struct cbench_records *records, const uint32_t *indexes,
    size_t count, size_t page) {
  struct cbench_pass pass = {0};
  uint64_t start = cbench_now();
  for (size_t next = 0; next < count;) {
    CBENCH_TRY(mdb_txn_renew(store->reader));
    for (size_t in_page = 0; in_page < page && next < count; in_page++, next++) {
      MDB_val key = cbench_key(records, indexes[next]), value;
      CBENCH_TRY(mdb_get(store->reader, store->records, &key, &value));
      pass.digest ^= cbench_touch(value.mv_data, value.mv_size);
      pass.operations++;
    }
    mdb_txn_reset(store->reader);
  }
  pass.nanoseconds = cbench_now() - start;
  return pass;
}

// MARK: - Staged pages

struct cbench_pass cbench_lmdb_stage(
    struct cbench_lmdb *store, const struct cbench_records *records, size_t page) {
  struct cbench_pass pass = {0};
  uint64_t start = cbench_now();
  for (size_t next = 0; next < records->count; next += page) {
    uint32_t count = (uint32_t)(records->count - next < page ? records->count - next : page);
    uint32_t bodies = records->offsets[next + count] - records->offsets[next];
    uint64_t number = __builtin_bswap64(next / page);
    MDB_txn *txn;
    CBENCH_TRY(mdb_txn_begin(store->env, NULL, 0, &txn));
    MDB_val key = {sizeof number, &number};
    MDB_val value = {(count + 1) * sizeof count + count * cbench_key_size + bodies, NULL};
    CBENCH_TRY(mdb_put(txn, store->records, &key, &value, MDB_RESERVE));
    // Filled in place: the count, where each record ends, the records.
    uint8_t *target = value.mv_data;
    memcpy(target, &count, sizeof count);
    target += sizeof count;
    uint8_t *contents = target + count * sizeof count;
    uint32_t end = 0;
    for (size_t index = next; index < next + count; index++) {
      const uint8_t *frame = records->frames + records->offsets[index] + index * cbench_key_size;
      uint32_t size =
          records->offsets[index + 1] - records->offsets[index] + cbench_key_size;
      memcpy(contents + end, frame, size);
      end += size;
      memcpy(target, &end, sizeof end);
      target += sizeof end;
      pass.operations++;
    }
    CBENCH_TRY(mdb_txn_commit(txn));
    pass.commits++;
  }
  pass.nanoseconds = cbench_now() - start;
  return pass;
}

// The records of a page; answers 0, or EINVAL for ends that lead out of the page.
static int touch_page(const MDB_val *page, struct cbench_pass *pass) {
  const uint8_t *bytes = page->mv_data;
  uint32_t count, begin = 0, end;
  if (page->mv_size < sizeof count) return EINVAL;
  memcpy(&count, bytes, sizeof count);
  if (count > (page->mv_size - sizeof count) / sizeof count) return EINVAL;
  const uint8_t *ends = bytes + sizeof count, *contents = ends + count * sizeof count;
  size_t size = page->mv_size - (count + 1) * sizeof count;
  for (uint32_t index = 0; index < count; index++) {
    memcpy(&end, ends + index * sizeof end, sizeof end);
    if (end > size || end < begin || end - begin < cbench_key_size) return EINVAL;
    pass->digest ^= cbench_touch(
        contents + begin + cbench_key_size, end - begin - cbench_key_size);
    begin = end;
  }
  pass->operations += count;
  return 0;
}

struct cbench_pass cbench_lmdb_scan_staged(struct cbench_lmdb *store, int passes) {
  struct cbench_pass pass = {0};
  uint64_t start = cbench_now();
  for (int number = 0; number < passes; number++) {
    for (uint64_t next = 0;; next++) {
      uint64_t name = __builtin_bswap64(next);
      MDB_val key = {sizeof name, &name}, value;
      CBENCH_TRY(mdb_txn_renew(store->reader));
      int code = mdb_get(store->reader, store->records, &key, &value);
      if (code == 0) CBENCH_TRY(touch_page(&value, &pass));
      mdb_txn_reset(store->reader);
      if (code == MDB_NOTFOUND) break;
      CBENCH_TRY(code);
    }
  }
  pass.nanoseconds = cbench_now() - start;
  return pass;
}

// MARK: - Many stores

static int get_once(MDB_env *env, const uint8_t *key_bytes, uint64_t *digest) {
  MDB_txn *txn;
  MDB_dbi records;
  int code = mdb_txn_begin(env, NULL, MDB_RDONLY, &txn);
  if (code != 0) return code;
  MDB_val key = {cbench_key_size, (void *)key_bytes}, value;
  code = mdb_dbi_open(txn, "records", 0, &records);
  if (code == 0) code = mdb_get(txn, records, &key, &value);
  if (code == 0) *digest ^= cbench_touch(value.mv_data, value.mv_size);
  mdb_txn_abort(txn);
  return code;
}

struct cbench_pass cbench_lmdb_visit(
    const char *const *directories, size_t count, size_t map_size, const uint8_t *key) {
  struct cbench_pass pass = {0};
  uint64_t start = cbench_now();
  for (size_t number = 0; number < count; number++) {
    MDB_env *env;
    CBENCH_TRY(open_env(directories[number], map_size, &env));
    uint64_t digest = 0;
    CBENCH_TRY(get_once(env, key, &digest));
    mdb_env_close(env);
    pass.digest += digest;
    pass.operations++;
  }
  pass.nanoseconds = cbench_now() - start;
  return pass;
}

int cbench_lmdb_keep_open(const char *directory, size_t map_size, const uint8_t *key) {
  MDB_env *env;
  MDB_txn *txn;
  MDB_dbi records;
  // As a program would that goes on to use it: the table is open, a reader waits to be renewed.
  int code = open_env(directory, map_size, &env);
  if (code == 0) code = open_table(env, MDB_RDONLY, 0, &records);
  if (code == 0) code = mdb_txn_begin(env, NULL, MDB_RDONLY, &txn);
  if (code != 0) return code;
  MDB_val found = {cbench_key_size, (void *)key}, value;
  code = mdb_get(txn, records, &found, &value);
  mdb_txn_reset(txn);
  return code;
}

// MARK: - Areas

static int read_owner(const char *directory, size_t map_size) {
  MDB_env *env;
  MDB_txn *txn;
  MDB_dbi values;
  int code = open_env(directory, map_size, &env);
  if (code != 0) return code;
  if ((code = mdb_txn_begin(env, NULL, MDB_RDONLY, &txn)) == 0) {
    static char name[] = "owner";
    MDB_val key = {sizeof name - 1, name}, owner;
    code = mdb_dbi_open(txn, "values", 0, &values);
    if (code == 0) code = mdb_get(txn, values, &key, &owner);
    mdb_txn_abort(txn);
  }
  mdb_env_close(env);
  return code;
}

int cbench_lmdb_owners(
    const char *const *directories, size_t count, size_t map_size, uint64_t *nanoseconds) {
  for (size_t number = 0; number < count; number++) {
    uint64_t start = cbench_now();
    int code = read_owner(directories[number], map_size);
    if (code != 0) return code;
    nanoseconds[number] = cbench_now() - start;
  }
  return 0;
}

// The same workloads on SQLite, as its documentation has it: prepared statements, reset and bound
// again, blobs bound and read in place, a write-ahead log.
#include "CBench.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

struct cbench_sqlite {
  sqlite3 *db;
  sqlite3_stmt *put, *get, *first, *after, *begin, *begin_read, *commit;
};

const char *cbench_sqlite_version(void) { return sqlite3_libversion(); }
const char *cbench_sqlite_message(int code) { return sqlite3_errstr(code); }

static int prepare(sqlite3 *db, const char *text, sqlite3_stmt **statement) {
  return sqlite3_prepare_v3(db, text, -1, SQLITE_PREPARE_PERSISTENT, statement, NULL);
}

// Each connection is used by one thread at a time, so it needs no mutex of its own.
static int open_db(const char *file, int form, sqlite3 **db) {
  int code = sqlite3_open_v2(
      file, db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);
  if (code == SQLITE_OK)
    code = sqlite3_exec(
        *db,
        form == cbench_sqlite_normal ? "PRAGMA synchronous = NORMAL" : "PRAGMA synchronous = FULL",
        NULL, NULL, NULL);
  if (code == SQLITE_OK) sqlite3_busy_timeout(*db, 10000);
  return code;
}

static int prepare_all(struct cbench_sqlite *store) {
  static const struct {
    size_t place;
    const char *text;
  } statements[] = {
      {offsetof(struct cbench_sqlite, put),
       "INSERT INTO records (key, value) VALUES (?1, ?2)"
       " ON CONFLICT (key) DO UPDATE SET value = excluded.value"},
      {offsetof(struct cbench_sqlite, get), "SELECT value FROM records WHERE key = ?1"},
      {offsetof(struct cbench_sqlite, first),
       "SELECT key, value FROM records ORDER BY key LIMIT ?2"},
      {offsetof(struct cbench_sqlite, after),
       "SELECT key, value FROM records WHERE key > ?1 ORDER BY key LIMIT ?2"},
      {offsetof(struct cbench_sqlite, begin), "BEGIN IMMEDIATE"},
      {offsetof(struct cbench_sqlite, begin_read), "BEGIN"},
      {offsetof(struct cbench_sqlite, commit), "COMMIT"},
  };
  int code = SQLITE_OK;
  for (size_t index = 0; code == SQLITE_OK && index < sizeof statements / sizeof *statements;
       index++)
    code = prepare(
        store->db, statements[index].text,
        (sqlite3_stmt **)((char *)store + statements[index].place));
  return code;
}

struct cbench_sqlite *cbench_sqlite_open(const char *file, int form, int *code) {
  struct cbench_sqlite *store = calloc(1, sizeof *store);
  if (!store) abort();
  *code = open_db(file, form, &store->db);
  if (*code == SQLITE_OK)
    // The file is mapped as LMDB's is, and the cache holds what a workload changes: without these
    // gets are half as fast.
    *code = sqlite3_exec(
        store->db,
        "PRAGMA journal_mode = WAL; PRAGMA mmap_size = 1073741824; PRAGMA cache_size = -65536",
        NULL, NULL, NULL);
  if (*code == SQLITE_OK)
    *code = sqlite3_exec(
        store->db,
        form == cbench_sqlite_rowid
            ? "CREATE TABLE IF NOT EXISTS records (key BLOB NOT NULL UNIQUE, value BLOB NOT NULL)"
            : "CREATE TABLE IF NOT EXISTS records"
              " (key BLOB NOT NULL PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID",
        NULL, NULL, NULL);
  if (*code == SQLITE_OK) *code = prepare_all(store);
  if (*code != SQLITE_OK) {
    cbench_sqlite_close(store);
    return NULL;
  }
  return store;
}

void cbench_sqlite_close(struct cbench_sqlite *store) {
  sqlite3_finalize(store->put);
  sqlite3_finalize(store->get);
  sqlite3_finalize(store->first);
  sqlite3_finalize(store->after);
  sqlite3_finalize(store->begin);
  sqlite3_finalize(store->begin_read);
  sqlite3_finalize(store->commit);
  sqlite3_close(store->db);
  free(store);
}

// Runs a statement without rows. Answers SQLITE_OK or why not.
static int run(sqlite3_stmt *statement) {
  int code = sqlite3_step(statement);
  int at_end = sqlite3_reset(statement);
  return code == SQLITE_DONE ? SQLITE_OK : (at_end != SQLITE_OK ? at_end : code);
}

static int put(sqlite3_stmt *statement, const struct cbench_records *records, size_t index) {
  sqlite3_bind_blob(
      statement, 1, records->keys + index * cbench_key_size, cbench_key_size, SQLITE_STATIC);
  sqlite3_bind_blob(
      statement, 2, records->values + records->offsets[index],
      (int)(records->offsets[index + 1] - records->offsets[index]), SQLITE_STATIC);
  return run(statement);
}

#define CBENCH_TRY(expression)      \
  do {                              \
    int code_ = (expression);       \
    if (code_ != SQLITE_OK) {       \
      pass.code = code_;            \
      pass.call = #expression;      \
      return pass;                  \
    }                               \
  } while (0)

struct cbench_pass cbench_sqlite_apply(
    struct cbench_sqlite *store, const struct cbench_records *records, const uint32_t *order,
    size_t page) {
  struct cbench_pass pass = {0};
  uint64_t start = cbench_now();
  for (size_t next = 0; next < records->count;) {
    CBENCH_TRY(run(store->begin));
    for (size_t in_page = 0; in_page < page && next < records->count; in_page++, next++) {
      CBENCH_TRY(put(store->put, records, order[next]));
      pass.operations++;
    }
    CBENCH_TRY(run(store->commit));
    pass.commits++;
  }
  pass.nanoseconds = cbench_now() - start;
  return pass;
}

// Touches the values of the page behind `last`, whose key is put there. Answers how many there were
// in `*count`.
static int scan_page(
    struct cbench_sqlite *store, size_t page, uint8_t *last, int is_begun, size_t *count,
    uint64_t *digest) {
  sqlite3_stmt *statement = is_begun ? store->after : store->first;
  if (is_begun) sqlite3_bind_blob(statement, 1, last, cbench_key_size, SQLITE_STATIC);
  sqlite3_bind_int64(statement, 2, (sqlite3_int64)page);
  int code;
  *count = 0;
  while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
    const void *value = sqlite3_column_blob(statement, 1);
    *digest ^= cbench_touch(value, (size_t)sqlite3_column_bytes(statement, 1));
    if (++*count == page) {
      const void *key = sqlite3_column_blob(statement, 0);
      // The key that was bound is read no more: the last row of the page has been stepped to.
      if (sqlite3_column_bytes(statement, 0) == cbench_key_size)
        memcpy(last, key, cbench_key_size);
    }
  }
  int at_end = sqlite3_reset(statement);
  return code == SQLITE_DONE ? SQLITE_OK : (at_end != SQLITE_OK ? at_end : code);
}

struct cbench_pass cbench_sqlite_scan(struct cbench_sqlite *store, size_t page, int passes) {
  struct cbench_pass pass = {0};
  uint64_t start = cbench_now();
  for (int number = 0; number < passes; number++) {
    uint8_t last[cbench_key_size];
    size_t count = page;
    for (int is_begun = 0; count == page; is_begun = 1) {
      CBENCH_TRY(scan_page(store, page, last, is_begun, &count, &pass.digest));
      pass.operations += count;
    }
  }
  pass.nanoseconds = cbench_now() - start;
  return pass;
}

static int get(sqlite3_stmt *statement, const uint8_t *key, uint64_t *digest) {
  sqlite3_bind_blob(statement, 1, key, cbench_key_size, SQLITE_STATIC);
  int code = sqlite3_step(statement);
  if (code == SQLITE_ROW)
    *digest ^= cbench_touch(
        sqlite3_column_blob(statement, 0), (size_t)sqlite3_column_bytes(statement, 0));
  int at_end = sqlite3_reset(statement);
  if (code == SQLITE_ROW) return at_end;
  return code == SQLITE_DONE ? SQLITE_NOTFOUND : code;
}

struct cbench_pass cbench_sqlite_get(
    struct cbench_sqlite *store, const struct cbench_records *records, const uint32_t *indexes,
    size_t count, size_t page) {
  struct cbench_pass pass = {0};
  uint64_t start = cbench_now();
  for (size_t next = 0; next < count;) {
    // A statement alone is a transaction already.
    if (page > 1) CBENCH_TRY(run(store->begin_read));
    for (size_t in_page = 0; in_page < page && next < count; in_page++, next++) {
      CBENCH_TRY(
          get(store->get, records->keys + (size_t)indexes[next] * cbench_key_size, &pass.digest));
      pass.operations++;
    }
    if (page > 1) CBENCH_TRY(run(store->commit));
  }
  pass.nanoseconds = cbench_now() - start;
  return pass;
}

// MARK: - Threads

struct sqlite_caller {
  struct cbench_sqlite *store;
  const struct cbench_records *records;
  size_t first, count, step;
  pthread_mutex_t *mutex;
  pthread_t thread;
  struct cbench_pass pass;
};

static struct cbench_pass write_some(struct sqlite_caller *self) {
  struct cbench_pass pass = {0};
  for (size_t next = self->first; next < self->count; next += self->step) {
    pthread_mutex_lock(self->mutex);
    int code = put(self->store->put, self->records, next);
    pthread_mutex_unlock(self->mutex);
    CBENCH_TRY(code);
    pass.operations++;
    pass.commits++;
  }
  return pass;
}

static void *sqlite_call(void *argument) {
  struct sqlite_caller *self = argument;
  self->pass = write_some(self);
  return NULL;
}

// SQLite has no commits that callers share; one connection under a mutex was faster than one each,
// whose writers wait for each other by sleeping.
struct cbench_pass cbench_sqlite_write(
    struct cbench_sqlite *store, const struct cbench_records *records, size_t count,
    size_t callers) {
  struct cbench_pass pass = {0};
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  struct sqlite_caller *all = calloc(callers, sizeof *all);
  if (!all) abort();
  uint64_t start = cbench_now();
  for (size_t number = 0; number < callers; number++) {
    all[number] = (struct sqlite_caller){
        .store = store,
        .records = records,
        .first = number,
        .count = count,
        .step = callers,
        .mutex = &mutex};
    if (callers == 1)
      sqlite_call(&all[number]);
    else if (pthread_create(&all[number].thread, NULL, sqlite_call, &all[number]) != 0)
      abort();
  }
  for (size_t number = 0; number < callers; number++) {
    if (callers > 1) pthread_join(all[number].thread, NULL);
    pass.operations += all[number].pass.operations;
    pass.commits += all[number].pass.commits;
    if (all[number].pass.code != 0) {
      pass.code = all[number].pass.code;
      pass.call = all[number].pass.call;
    }
  }
  pass.nanoseconds = cbench_now() - start;
  free(all);
  return pass;
}

struct sqlite_reader {
  const char *file;
  int form;
  size_t page, expected;
  uint64_t digest, deadline;
  pthread_t thread;
  struct cbench_pass pass;
};

static struct cbench_pass scan_until(struct sqlite_reader *self, struct cbench_sqlite *store) {
  struct cbench_pass pass = {0};
  while (cbench_now() < self->deadline) {
    uint8_t last[cbench_key_size];
    uint64_t digest = 0;
    size_t seen = 0, count = self->page;
    int is_begun = 0;
    for (; count == self->page && cbench_now() < self->deadline; is_begun = 1) {
      CBENCH_TRY(scan_page(store, self->page, last, is_begun, &count, &digest));
      seen += count;
    }
    pass.operations += seen;
    if (is_begun && count < self->page) {
      pass.commits++;
      if (seen != self->expected || digest != self->digest) CBENCH_TRY(SQLITE_MISMATCH);
    }
  }
  return pass;
}

static void *read_until(void *argument) {
  struct sqlite_reader *self = argument;
  int code;
  struct cbench_sqlite *store = cbench_sqlite_open(self->file, self->form, &code);
  if (!store) {
    self->pass.code = code;
    self->pass.call = "sqlite3_open_v2";
    return NULL;
  }
  self->pass = scan_until(self, store);
  cbench_sqlite_close(store);
  return NULL;
}

static struct cbench_pass write_until(
    struct cbench_sqlite *store, const struct cbench_records *first,
    const struct cbench_records *second, size_t page, uint64_t deadline) {
  struct cbench_pass pass = {0};
  const struct cbench_records *records = second;
  for (size_t next = 0; cbench_now() < deadline;) {
    CBENCH_TRY(run(store->begin));
    for (size_t in_page = 0; in_page < page; in_page++) {
      CBENCH_TRY(put(store->put, records, next));
      pass.operations++;
      if (++next == records->count) {
        next = 0;
        records = records == first ? second : first;
      }
    }
    CBENCH_TRY(run(store->commit));
    pass.commits++;
  }
  return pass;
}

struct cbench_pass cbench_sqlite_beside(
    const char *file, int form, const struct cbench_records *first,
    const struct cbench_records *second, size_t page, uint64_t nanoseconds, uint64_t digest) {
  struct cbench_pass pass = {0};
  struct sqlite_reader readers[2];
  struct cbench_sqlite *store = cbench_sqlite_open(file, form, &pass.code);
  if (!store) {
    pass.call = "sqlite3_open_v2";
    return pass;
  }
  uint64_t start = cbench_now();
  for (int number = 0; number < 2; number++) {
    readers[number] = (struct sqlite_reader){
        .file = file,
        .form = form,
        .page = page,
        .expected = first->count,
        .digest = digest,
        .deadline = start + nanoseconds};
    if (pthread_create(&readers[number].thread, NULL, read_until, &readers[number]) != 0) abort();
  }
  pass = write_until(store, first, second, page, start + nanoseconds);
  pass.nanoseconds = cbench_now() - start;
  for (int number = 0; number < 2; number++) {
    pthread_join(readers[number].thread, NULL);
    pass.extra += readers[number].pass.operations;
    if (readers[number].pass.code != 0 && pass.code == 0) {
      pass.code = readers[number].pass.code;
      pass.call = readers[number].pass.call;
    }
  }
  cbench_sqlite_close(store);
  return pass;
}

// MARK: - Many stores

static int get_once(sqlite3 *db, const uint8_t *key, sqlite3_stmt **statement, uint64_t *digest) {
  int code = prepare(db, "SELECT value FROM records WHERE key = ?1", statement);
  return code == SQLITE_OK ? get(*statement, key, digest) : code;
}

struct cbench_pass cbench_sqlite_visit(
    const char *const *files, size_t count, int form, const uint8_t *key) {
  struct cbench_pass pass = {0};
  uint64_t start = cbench_now();
  for (size_t number = 0; number < count; number++) {
    sqlite3 *db;
    sqlite3_stmt *statement;
    CBENCH_TRY(open_db(files[number], form, &db));
    uint64_t digest = 0;
    CBENCH_TRY(get_once(db, key, &statement, &digest));
    sqlite3_finalize(statement);
    CBENCH_TRY(sqlite3_close(db));
    pass.digest += digest;
    pass.operations++;
  }
  pass.nanoseconds = cbench_now() - start;
  return pass;
}

int cbench_sqlite_keep_open(const char *file, int form, const uint8_t *key) {
  sqlite3 *db;
  sqlite3_stmt *statement;
  uint64_t digest = 0;
  int code = open_db(file, form, &db);
  return code == SQLITE_OK ? get_once(db, key, &statement, &digest) : code;
}

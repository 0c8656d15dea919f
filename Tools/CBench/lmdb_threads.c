// Writers and readers of one environment on threads.
#include "lmdb_store.h"

#include <pthread.h>
#include <stdlib.h>

struct cbench_pass cbench_lmdb_write_alone(
    struct cbench_lmdb *store, const struct cbench_records *records, size_t count) {
  struct cbench_pass pass = {0};
  uint64_t start = cbench_now();
  for (size_t next = 0; next < count; next++) {
    MDB_txn *txn;
    MDB_val key = cbench_key(records, next), value = cbench_value(records, next);
    CBENCH_TRY(mdb_txn_begin(store->env, NULL, 0, &txn));
    CBENCH_TRY(mdb_put(txn, store->records, &key, &value, 0));
    CBENCH_TRY(mdb_txn_commit(txn));
    pass.operations++;
    pass.commits++;
  }
  pass.nanoseconds = cbench_now() - start;
  return pass;
}

// MARK: - Shared commits

enum { group_count_max = 512 };

struct group {
  struct cbench_lmdb *store;
  const struct cbench_records *records;
  size_t count, callers;
  pthread_mutex_t mutex;
  pthread_cond_t has_work;
  struct caller *waiting, **end;  // in the order of arrival
  int is_over;
  struct cbench_pass pass;
};

struct caller {
  struct group *group;
  size_t number;
  pthread_t thread;
  pthread_cond_t is_done;
  int is_waiting;
  MDB_val key, value;
  int code;  // of this write alone
  struct caller *next;
  struct cbench_pass pass;
};

static void *call(void *argument) {
  struct caller *self = argument;
  struct group *group = self->group;
  pthread_mutex_lock(&group->mutex);
  for (size_t next = self->number; next < group->count; next += group->callers) {
    self->key = cbench_key(group->records, next);
    self->value = cbench_value(group->records, next);
    self->is_waiting = 1;
    self->next = NULL;
    if (!group->waiting) pthread_cond_signal(&group->has_work);
    *group->end = self;
    group->end = &self->next;
    while (self->is_waiting) pthread_cond_wait(&self->is_done, &group->mutex);
    if (self->code != 0) {
      self->pass.code = self->code;
      self->pass.call = "mdb_put";
      break;
    }
    self->pass.operations++;
  }
  pthread_mutex_unlock(&group->mutex);
  return NULL;
}

// Each write in a transaction nested in the group's, so that its failure is its own.
static int commit_group(struct group *group, struct caller **jobs, size_t count) {
  MDB_txn *txn, *nested;
  int code = mdb_txn_begin(group->store->env, NULL, 0, &txn);
  if (code != 0) return code;
  for (size_t index = 0; index < count; index++) {
    code = mdb_txn_begin(group->store->env, txn, 0, &nested);
    if (code != 0) {
      mdb_txn_abort(txn);
      return code;
    }
    struct caller *job = jobs[index];
    job->code = mdb_put(nested, group->store->records, &job->key, &job->value, 0);
    if (job->code == 0)
      job->code = mdb_txn_commit(nested);
    else
      mdb_txn_abort(nested);
  }
  return mdb_txn_commit(txn);
}

static void *serve(void *argument) {
  struct group *group = argument;
  struct caller *jobs[group_count_max];
  pthread_mutex_lock(&group->mutex);
  while (1) {
    while (!group->waiting && !group->is_over) pthread_cond_wait(&group->has_work, &group->mutex);
    if (!group->waiting) break;
    size_t count = 0;
    for (; group->waiting && count < group_count_max; group->waiting = group->waiting->next)
      jobs[count++] = group->waiting;
    if (!group->waiting) group->end = &group->waiting;
    pthread_mutex_unlock(&group->mutex);
    int code = commit_group(group, jobs, count);
    pthread_mutex_lock(&group->mutex);
    group->pass.commits++;
    for (size_t index = 0; index < count; index++) {
      if (code != 0) jobs[index]->code = code;
      jobs[index]->is_waiting = 0;
    }
    // Signalled without the lock, or each that wakes would only wait for it.
    pthread_mutex_unlock(&group->mutex);
    for (size_t index = 0; index < count; index++) pthread_cond_signal(&jobs[index]->is_done);
    pthread_mutex_lock(&group->mutex);
  }
  pthread_mutex_unlock(&group->mutex);
  return NULL;
}

struct cbench_pass cbench_lmdb_write_together(
    struct cbench_lmdb *store, const struct cbench_records *records, size_t count,
    size_t callers) {
  struct group group = {
      .store = store,
      .records = records,
      .count = count,
      .callers = callers,
      .mutex = PTHREAD_MUTEX_INITIALIZER,
      .has_work = PTHREAD_COND_INITIALIZER};
  group.end = &group.waiting;
  struct caller *all = calloc(callers, sizeof *all);
  if (!all) abort();
  pthread_t writer;
  uint64_t start = cbench_now();
  if (pthread_create(&writer, NULL, serve, &group) != 0) abort();
  for (size_t number = 0; number < callers; number++) {
    all[number].group = &group;
    all[number].number = number;
    pthread_cond_init(&all[number].is_done, NULL);
    if (pthread_create(&all[number].thread, NULL, call, &all[number]) != 0) abort();
  }
  for (size_t number = 0; number < callers; number++) {
    pthread_join(all[number].thread, NULL);
    group.pass.operations += all[number].pass.operations;
    if (all[number].pass.code != 0) {
      group.pass.code = all[number].pass.code;
      group.pass.call = all[number].pass.call;
    }
  }
  pthread_mutex_lock(&group.mutex);
  group.is_over = 1;
  pthread_cond_signal(&group.has_work);
  pthread_mutex_unlock(&group.mutex);
  pthread_join(writer, NULL);
  group.pass.nanoseconds = cbench_now() - start;
  for (size_t number = 0; number < callers; number++)
    pthread_cond_destroy(&all[number].is_done);
  free(all);
  return group.pass;
}

// MARK: - Two readers beside a writer

struct reader {
  struct cbench_lmdb store;
  size_t page, expected;
  uint64_t digest, deadline;
  pthread_t thread;
  struct cbench_pass pass;
};

// Scans again and again; what each whole scan has seen is checked.
static struct cbench_pass scan_until(struct reader *self) {
  struct cbench_pass pass = {0};
  CBENCH_TRY(mdb_txn_begin(self->store.env, NULL, MDB_RDONLY, &self->store.reader));
  CBENCH_TRY(mdb_cursor_open(self->store.reader, self->store.records, &self->store.cursor));
  mdb_txn_reset(self->store.reader);
  while (cbench_now() < self->deadline) {
    uint8_t last[cbench_key_size];
    uint64_t digest = 0;
    size_t seen = 0;
    int code = 0;
    while (code == 0 && cbench_now() < self->deadline) {
      MDB_val key = {cbench_key_size, last}, value;
      CBENCH_TRY(mdb_txn_renew(self->store.reader));
      CBENCH_TRY(mdb_cursor_renew(self->store.reader, self->store.cursor));
      if (seen == 0)
        code = mdb_cursor_get(self->store.cursor, &key, &value, MDB_FIRST);
      else
        code = mdb_cursor_get(self->store.cursor, &key, &value, MDB_SET_RANGE);
      if (code == 0 && seen > 0 && memcmp(key.mv_data, last, cbench_key_size) == 0)
        code = mdb_cursor_get(self->store.cursor, &key, &value, MDB_NEXT);
      size_t left = self->page;
      while (code == 0) {
        digest ^= cbench_touch(value.mv_data, value.mv_size);
        seen++;
        if (--left == 0) {
          memcpy(last, key.mv_data, cbench_key_size);
          break;
        }
        code = mdb_cursor_get(self->store.cursor, &key, &value, MDB_NEXT);
      }
      mdb_txn_reset(self->store.reader);
    }
    pass.operations += seen;
    if (code == MDB_NOTFOUND) {
      pass.commits++;
      if (seen != self->expected || digest != self->digest) CBENCH_TRY(EINVAL);
    } else {
      CBENCH_TRY(code);
    }
  }
  mdb_cursor_close(self->store.cursor);
  mdb_txn_abort(self->store.reader);
  return pass;
}

static void *read_until(void *argument) {
  struct reader *self = argument;
  self->pass = scan_until(self);
  return NULL;
}

static struct cbench_pass write_until(
    struct cbench_lmdb *store, const struct cbench_records *first,
    const struct cbench_records *second, size_t page, uint64_t deadline) {
  struct cbench_pass pass = {0};
  const struct cbench_records *records = second;
  for (size_t next = 0; cbench_now() < deadline;) {
    MDB_txn *txn;
    MDB_cursor *cursor;
    CBENCH_TRY(mdb_txn_begin(store->env, NULL, 0, &txn));
    CBENCH_TRY(mdb_cursor_open(txn, store->records, &cursor));
    for (size_t in_page = 0; in_page < page; in_page++) {
      MDB_val key = cbench_key(records, next), value = cbench_value(records, next);
      CBENCH_TRY(mdb_cursor_put(cursor, &key, &value, 0));
      pass.operations++;
      if (++next == records->count) {
        next = 0;
        records = records == first ? second : first;
      }
    }
    mdb_cursor_close(cursor);
    CBENCH_TRY(mdb_txn_commit(txn));
    pass.commits++;
  }
  return pass;
}

struct cbench_pass cbench_lmdb_beside(
    struct cbench_lmdb *store, const struct cbench_records *first,
    const struct cbench_records *second, size_t page, uint64_t nanoseconds, uint64_t digest) {
  struct reader readers[2];
  uint64_t start = cbench_now();
  for (int number = 0; number < 2; number++) {
    readers[number] = (struct reader){
        .store = {.env = store->env, .records = store->records},
        .page = page,
        .expected = first->count,
        .digest = digest,
        .deadline = start + nanoseconds};
    if (pthread_create(&readers[number].thread, NULL, read_until, &readers[number]) != 0) abort();
  }
  struct cbench_pass pass = write_until(store, first, second, page, start + nanoseconds);
  pass.nanoseconds = cbench_now() - start;
  for (int number = 0; number < 2; number++) {
    pthread_join(readers[number].thread, NULL);
    pass.extra += readers[number].pass.operations;
    if (readers[number].pass.code != 0 && pass.code == 0) {
      pass.code = readers[number].pass.code;
      pass.call = readers[number].pass.call;
    }
  }
  return pass;
}

// What a transaction of the module left in its tables, found out by comparing the data file before it
// and behind it; and C doing the same, table by table and row by row.
#include "CBench.h"

#include <errno.h>
#include <lmdb.h>
#include <stdlib.h>
#include <string.h>

enum { table_count_max = 160, name_size_max = 256 };

struct row {
  unsigned table;
  int is_deleted;
  MDB_val key, value;  // of their own memory
};

struct cbench_rows {
  char names[table_count_max][name_size_max];
  unsigned flags[table_count_max];  // with which the table is made, where it is missing
  unsigned table_count;
  struct row *rows;
  size_t count, room, size;
};

static MDB_val copied(MDB_val value) {
  MDB_val copy = {value.mv_size, malloc(value.mv_size ? value.mv_size : 1)};
  if (!copy.mv_data) abort();
  memcpy(copy.mv_data, value.mv_data, value.mv_size);
  return copy;
}

static void note(
    struct cbench_rows *rows, unsigned table, int is_deleted, MDB_val key, MDB_val value) {
  if (rows->count == rows->room) {
    rows->room = rows->room ? rows->room * 2 : 64;
    rows->rows = realloc(rows->rows, rows->room * sizeof *rows->rows);
    if (!rows->rows) abort();
  }
  rows->rows[rows->count++] = (struct row){table, is_deleted, copied(key), copied(value)};
  rows->size += key.mv_size + (is_deleted ? 0 : value.mv_size);
}

// A copy of a data file that nobody else opens.
static int open_copy(const char *directory, unsigned flags, MDB_env **env) {
  int code = mdb_env_create(env);
  if (code != 0) return code;
  if ((code = mdb_env_set_mapsize(*env, (size_t)4 << 30)) != 0 ||
      (code = mdb_env_set_maxdbs(*env, table_count_max)) != 0 ||
      (code = mdb_env_open(*env, directory, MDB_NOTLS | flags, 0600)) != 0) {
    mdb_env_close(*env);
    *env = NULL;
  }
  return code;
}

static int step(MDB_cursor *cursor, MDB_cursor_op operation, MDB_val *key, MDB_val *value) {
  return cursor ? mdb_cursor_get(cursor, key, value, operation) : MDB_NOTFOUND;
}

struct side {
  MDB_txn *txn;
  MDB_dbi table;
  MDB_cursor *cursor;
  MDB_val key, value;
  int code;
};

static int open_side(struct side *side, const char *name) {
  side->cursor = NULL;
  int code = mdb_dbi_open(side->txn, name, 0, &side->table);
  if (code == MDB_NOTFOUND) return side->code = MDB_NOTFOUND, 0;
  if (code != 0 || (code = mdb_cursor_open(side->txn, side->table, &side->cursor)) != 0)
    return code;
  side->code = step(side->cursor, MDB_FIRST, &side->key, &side->value);
  return 0;
}

static void advance(struct side *side) {
  side->code = step(side->cursor, MDB_NEXT, &side->key, &side->value);
}

// Where the row of `before` lies, seen from the one of `after`: below 0, before it.
static int order(const struct side *before, const struct side *after, int has_duplicates) {
  if (before->code != 0) return 1;
  if (after->code != 0) return -1;
  int order = mdb_cmp(after->txn, after->table, &before->key, &after->key);
  if (order != 0 || !has_duplicates) return order;
  return mdb_dcmp(after->txn, after->table, &before->value, &after->value);
}

static int compare_table(
    struct cbench_rows *rows, struct side *before, struct side *after, const char *name) {
  int code = open_side(before, name);
  if (code == 0) code = open_side(after, name);
  if (code != 0) return code;
  unsigned flags, table = rows->table_count;
  if ((code = mdb_dbi_flags(after->txn, after->table, &flags)) != 0) return code;
  size_t count = rows->count;
  while (before->code == 0 || after->code == 0) {
    int place = order(before, after, (flags & MDB_DUPSORT) != 0);
    if (place < 0) {
      note(rows, table, 1, before->key, before->value);
      advance(before);
      continue;
    }
    int is_new = place > 0 || before->value.mv_size != after->value.mv_size ||
                 memcmp(before->value.mv_data, after->value.mv_data, after->value.mv_size) != 0;
    if (is_new) note(rows, table, 0, after->key, after->value);
    if (place == 0) advance(before);
    advance(after);
  }
  if (before->cursor) mdb_cursor_close(before->cursor);
  if (after->cursor) mdb_cursor_close(after->cursor);
  code = before->code == MDB_NOTFOUND ? after->code : before->code;
  if (code != MDB_NOTFOUND) return code;
  if (rows->count > count) {
    if (table == table_count_max || strlen(name) >= name_size_max) return ENOBUFS;
    strcpy(rows->names[table], name);
    rows->flags[table] = flags;
    rows->table_count++;
  }
  return 0;
}

static int compare_all(struct cbench_rows *rows, struct side *before, struct side *after) {
  MDB_dbi main;
  MDB_cursor *names;
  MDB_val name, ignored;
  int code = mdb_dbi_open(after->txn, NULL, 0, &main);
  if (code != 0 || (code = mdb_cursor_open(after->txn, main, &names)) != 0) return code;
  while ((code = mdb_cursor_get(names, &name, &ignored, MDB_NEXT)) == 0) {
    char text[name_size_max] = {0};
    if (name.mv_size >= name_size_max) return ENOBUFS;
    memcpy(text, name.mv_data, name.mv_size);
    if ((code = compare_table(rows, before, after, text)) != 0) return code;
  }
  mdb_cursor_close(names);
  return code == MDB_NOTFOUND ? 0 : code;
}

struct cbench_rows *cbench_rows_between(const char *before, const char *after, int *code) {
  struct cbench_rows *rows = calloc(1, sizeof *rows);
  if (!rows) abort();
  MDB_env *first = NULL, *second = NULL;
  struct side left = {0}, right = {0};
  if ((*code = open_copy(before, MDB_RDONLY | MDB_NOLOCK, &first)) == 0 &&
      (*code = open_copy(after, MDB_RDONLY | MDB_NOLOCK, &second)) == 0 &&
      (*code = mdb_txn_begin(first, NULL, MDB_RDONLY, &left.txn)) == 0 &&
      (*code = mdb_txn_begin(second, NULL, MDB_RDONLY, &right.txn)) == 0)
    *code = compare_all(rows, &left, &right);
  if (left.txn) mdb_txn_abort(left.txn);
  if (right.txn) mdb_txn_abort(right.txn);
  if (first) mdb_env_close(first);
  if (second) mdb_env_close(second);
  if (*code == 0) return rows;
  cbench_rows_free(rows);
  return NULL;
}

void cbench_rows_free(struct cbench_rows *rows) {
  for (size_t index = 0; index < rows->count; index++) {
    free(rows->rows[index].key.mv_data);
    free(rows->rows[index].value.mv_data);
  }
  free(rows->rows);
  free(rows);
}

size_t cbench_rows_count(const struct cbench_rows *rows) { return rows->count; }
size_t cbench_rows_table_count(const struct cbench_rows *rows) { return rows->table_count; }
size_t cbench_rows_size(const struct cbench_rows *rows) { return rows->size; }

// MARK: - Doing the same

static int open_tables(MDB_env *env, const struct cbench_rows *rows, MDB_dbi *tables) {
  MDB_txn *txn;
  int code = mdb_txn_begin(env, NULL, 0, &txn);
  if (code != 0) return code;
  for (unsigned table = 0; table < rows->table_count && code == 0; table++)
    code = mdb_dbi_open(txn, rows->names[table], MDB_CREATE | rows->flags[table], &tables[table]);
  if (code == 0) return mdb_txn_commit(txn);
  mdb_txn_abort(txn);
  return code;
}

static int perform(
    MDB_txn *txn, const MDB_dbi *tables, const struct cbench_rows *rows, int deletes_only,
    struct cbench_pass *pass) {
  for (size_t index = 0; index < rows->count; index++) {
    const struct row *row = &rows->rows[index];
    MDB_val key = row->key, value = row->value;
    MDB_dbi table = tables[row->table];
    int code = 0;
    if (row->is_deleted)
      code = mdb_del(txn, table, &key, rows->flags[row->table] & MDB_DUPSORT ? &value : NULL);
    else if (!deletes_only)
      code = mdb_put(txn, table, &key, &value, 0);
    else
      continue;
    // A row that was put by an earlier step, whose puts are left out.
    if (code == MDB_NOTFOUND && deletes_only) continue;
    if (code != 0) return code;
    pass->operations++;
  }
  return 0;
}

#define TRY(expression)                               \
  do {                                                \
    int code_ = (expression);                         \
    if (code_ != 0) {                                 \
      pass.code = code_;                              \
      pass.call = #expression;                        \
      goto out;                                       \
    }                                                 \
  } while (0)

struct cbench_pass cbench_rows_perform(
    const char *directory, struct cbench_rows *const *steps, size_t count, int deletes_only,
    struct cbench_writes *writes) {
  struct cbench_pass pass = {0};
  MDB_env *env = NULL;
  MDB_dbi(*tables)[table_count_max] = calloc(count, sizeof *tables);
  if (!tables) abort();
  TRY(open_copy(directory, 0, &env));
  for (size_t step = 0; step < count; step++) TRY(open_tables(env, steps[step], tables[step]));
  cbench_start_counting_writes();
  uint64_t start = cbench_now();
  for (size_t step = 0; step < count; step++) {
    MDB_txn *txn;
    TRY(mdb_txn_begin(env, NULL, 0, &txn));
    int code = perform(txn, tables[step], steps[step], deletes_only, &pass);
    if (code != 0) mdb_txn_abort(txn);
    TRY(code);
    TRY(mdb_txn_commit(txn));
    pass.commits++;
  }
  pass.nanoseconds = cbench_now() - start;
out:
  *writes = cbench_stop_counting_writes();
  if (env) mdb_env_close(env);
  free(tables);
  return pass;
}

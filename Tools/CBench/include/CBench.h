#pragma once
// What `bench` measures against: the same workloads straight on liblmdb and on SQLite's C API.
//
// Every call fills a `cbench_pass`: how long it took, how much it did, and what it saw, so that the
// caller can check that all engines did the same work. A pass with a `code` other than 0 failed.
#include <stddef.h>
#include <stdint.h>

enum { cbench_key_size = 16 };

// Records side by side: keys of 16 bytes, and values between the offsets; `offsets` has one more.
// `frames` has each record's key and value in one piece.
struct cbench_records {
  const uint8_t *keys;
  const uint8_t *values;
  const uint32_t *offsets;
  const uint8_t *frames;
  size_t count;
};

struct cbench_pass {
  uint64_t nanoseconds;
  uint64_t operations;  // records, gets, writes or stores
  uint64_t digest;      // XOR (for visits the sum) of what `cbench_touch` answered for each value
  uint64_t commits;
  uint64_t extra;       // for two readers beside a writer: the records that the readers saw
  int code;             // 0, or the library's
  const char *call;     // what failed
};

// The XOR of a value's 8-byte words, the rest filled up with zeros. All engines call this one.
uint64_t cbench_touch(const void *bytes, size_t count);
// Nanoseconds of the monotonic clock.
uint64_t cbench_now(void);

// Counting of calls that allocate, in all threads. Answers 0 where it cannot be done.
int cbench_can_count_allocations(void);
void cbench_start_counting(void);
uint64_t cbench_stop_counting(void);

// Counting of bytes written to files, and of waits for a disk: flushes, and writes that are durable
// when they return. Not beside another count of itself. Answers 0 where it cannot be done.
struct cbench_writes {
  uint64_t bytes;
  uint64_t flushes;
};
int cbench_can_count_writes(void);
void cbench_start_counting_writes(void);
struct cbench_writes cbench_stop_counting_writes(void);

const char *cbench_lmdb_version(void);
const char *cbench_sqlite_version(void);
const char *cbench_compiler(void);

// liblmdb. `cbench_lmdb_open` makes what is missing and answers NULL with `*code` on failure.
struct cbench_lmdb;
struct cbench_lmdb *cbench_lmdb_open(const char *directory, size_t map_size, int *code);
// The same without waiting for the disk, as what is only staged needs none.
struct cbench_lmdb *cbench_lmdb_open_unsynced(const char *directory, size_t map_size, int *code);
void cbench_lmdb_close(struct cbench_lmdb *store);
const char *cbench_lmdb_message(int code);

// Upserts the records in the order given, `page` of them in each durable transaction.
struct cbench_pass cbench_lmdb_apply(
    struct cbench_lmdb *store, const struct cbench_records *records, const uint32_t *order,
    size_t page);
// Reads all records in key order, `page` of them in each transaction, and touches each.
struct cbench_pass cbench_lmdb_scan(
    struct cbench_lmdb *store, size_t page, int passes, int prefetches);
// Gets the keys at `indexes`, `page` of them in each transaction, and touches each.
struct cbench_pass cbench_lmdb_get(
    struct cbench_lmdb *store, const struct cbench_records *records, const uint32_t *indexes,
    size_t count, size_t page);
// Writes `count` records, each in a durable transaction of its own.
struct cbench_pass cbench_lmdb_write_alone(
    struct cbench_lmdb *store, const struct cbench_records *records, size_t count);
// The same from threads that each wait for the commit of their write; waiting writes share one.
struct cbench_pass cbench_lmdb_write_together(
    struct cbench_lmdb *store, const struct cbench_records *records, size_t count, size_t callers);
// Two readers scan while a writer upserts pages, of `first` and `second` by turns, for some time.
struct cbench_pass cbench_lmdb_beside(
    struct cbench_lmdb *store, const struct cbench_records *first,
    const struct cbench_records *second, size_t page, uint64_t nanoseconds, uint64_t digest);
// One value for each page of records: their count and the end of each, then keys and values.
struct cbench_pass cbench_lmdb_stage(
    struct cbench_lmdb *store, const struct cbench_records *records, size_t page);
struct cbench_pass cbench_lmdb_scan_staged(struct cbench_lmdb *store, int passes);
// Opens each store, gets one key, closes it.
struct cbench_pass cbench_lmdb_visit(
    const char *const *directories, size_t count, size_t map_size, const uint8_t *key);
// Opens a store, gets one key and leaves it open. Answers 0 or a code.
int cbench_lmdb_keep_open(const char *directory, size_t map_size, const uint8_t *key);
// Opens the environment of each area, reads its owner's bytes and closes it; `nanoseconds` gets how
// long each took. Answers 0 or a code.
int cbench_lmdb_owners(
    const char *const *directories, size_t count, size_t map_size, uint64_t *nanoseconds);

// The rows in which two copies of an environment differ, in all its tables: what the transactions
// between them came to. Both are directories with a data file that nobody has open.
struct cbench_rows;
struct cbench_rows *cbench_rows_between(const char *before, const char *after, int *code);
void cbench_rows_free(struct cbench_rows *rows);
size_t cbench_rows_count(const struct cbench_rows *rows);
size_t cbench_rows_table_count(const struct cbench_rows *rows);
// Bytes of the keys, and of the values that were put.
size_t cbench_rows_size(const struct cbench_rows *rows);
// Puts and deletes those rows in a copy, each step in a durable transaction of its own.
struct cbench_pass cbench_rows_perform(
    const char *directory, struct cbench_rows *const *steps, size_t count, int deletes_only,
    struct cbench_writes *writes);

// HTTP: requests one after another on one connection, their answers counted (`extra`: bytes) and
// dropped. Anything but 200 is a failure.
struct cbench_exchange {
  const char *url;
  const void *body;  // NULL: a GET
  size_t body_size;
};
struct cbench_pass cbench_http_exchange(
    const struct cbench_exchange *exchanges, size_t count, const char *const *headers,
    size_t header_count);
const char *cbench_http_message(int code);
// A server on a free port of the loopback that takes every body and answers as many bytes as its
// path says: `/1234`. NULL when it cannot be started.
struct cbench_echo;
struct cbench_echo *cbench_echo_start(uint16_t *port);
void cbench_echo_stop(struct cbench_echo *echo);

// SQLite: write-ahead log, prepared statements, the file mapped, a cache of 64 MiB, a table WITHOUT
// ROWID whose key is the blob. A store that is opened for one get has SQLite's own defaults.
struct cbench_sqlite;
enum cbench_sqlite_form {
  cbench_sqlite_full = 0,    // synchronous = FULL
  cbench_sqlite_normal = 1,  // synchronous = NORMAL
  cbench_sqlite_rowid = 2    // synchronous = FULL, a table by rowid with an index on the key
};
struct cbench_sqlite *cbench_sqlite_open(const char *file, int form, int *code);
void cbench_sqlite_close(struct cbench_sqlite *store);
const char *cbench_sqlite_message(int code);
struct cbench_pass cbench_sqlite_apply(
    struct cbench_sqlite *store, const struct cbench_records *records, const uint32_t *order,
    size_t page);
struct cbench_pass cbench_sqlite_scan(struct cbench_sqlite *store, size_t page, int passes);
struct cbench_pass cbench_sqlite_get(
    struct cbench_sqlite *store, const struct cbench_records *records, const uint32_t *indexes,
    size_t count, size_t page);
struct cbench_pass cbench_sqlite_write(
    struct cbench_sqlite *store, const struct cbench_records *records, size_t count,
    size_t callers);
struct cbench_pass cbench_sqlite_beside(
    const char *file, int form, const struct cbench_records *first,
    const struct cbench_records *second, size_t page, uint64_t nanoseconds, uint64_t digest);
struct cbench_pass cbench_sqlite_visit(
    const char *const *files, size_t count, int form, const uint8_t *key);
int cbench_sqlite_keep_open(const char *file, int form, const uint8_t *key);

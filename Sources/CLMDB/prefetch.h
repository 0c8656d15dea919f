#pragma once
// Software prefetch for a scan through leaves of the map.
//
// A leaf that was filled in key order holds its records downwards in memory, which no hardware
// prefetcher follows: a warm scan then waits for memory on every record. While the records of one
// leaf are visited, the lines of the next leaf are asked for, a few with each record. The next leaf
// is taken to be the next page, as it is where records were inserted in order; where that guess
// fails, a second cursor (the scout) goes ahead and finds it.
//
// Reads the layout of LMDB 0.9's leaf pages (data version 1: a 16-byte head, then the offsets of the
// nodes, each with an 8-byte head), for pages within the map only. Whatever a damaged page says, no
// byte outside that page is read; a prefetch of any address is harmless.
#include <lmdb.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct clmdb_prefetcher {
  MDB_cursor *scout;      // of the same table; the caller's, or opened at the first failed guess
  uintptr_t page;         // the leaf that is being visited
  uintptr_t next;         // the leaf expected behind it
  uintptr_t asked;        // lines of `next` at and above this address were asked for
  size_t page_size;       // a power of two, at most 65,536
  unsigned scouted;       // for how many leaves the scout is still used
};

enum {
  clmdb_line = 64,
  // A record of 200 to 500 bytes needs 4 to 8 lines; one leaf is asked for within 8 records.
  clmdb_lines_per_record = 8,
  // One failed guess says more will follow: the scout stays in use for some leaves.
  clmdb_scouted_leaves = 8
};

// Where the leaf behind `page` begins, or 0 if the scout cannot tell.
static inline uintptr_t clmdb_leaf_behind(struct clmdb_prefetcher *p, MDB_cursor *cursor) {
  const uint8_t *page = (const uint8_t *)p->page;
  uint16_t lower, offset, key_size;
  memcpy(&lower, page + 12, 2);
  if (lower < 18 || lower > p->page_size) return 0;
  memcpy(&offset, page + lower - 2, 2);
  if ((size_t)offset + 8 > p->page_size) return 0;
  memcpy(&key_size, page + offset + 6, 2);
  if (key_size == 0 || (size_t)offset + 8 + key_size > p->page_size) return 0;
  if (!p->scout &&
      mdb_cursor_open(mdb_cursor_txn(cursor), mdb_cursor_dbi(cursor), &p->scout) != 0) {
    p->scout = NULL;
    return 0;
  }
  MDB_val key = {key_size, (void *)(page + offset + 8)}, value;
  if (mdb_cursor_get(p->scout, &key, &value, MDB_SET_KEY) != 0) return 0;
  if (mdb_cursor_get(p->scout, &key, &value, MDB_NEXT) != 0) return 0;
  return (uintptr_t)key.mv_data & ~(uintptr_t)(p->page_size - 1);
}

static inline void clmdb_enter_leaf(
    struct clmdb_prefetcher *p, MDB_cursor *cursor, uintptr_t page) {
  if (page != p->next) {
    for (uintptr_t line = page + p->page_size; line > page; line -= clmdb_line)
      __builtin_prefetch((const void *)(line - clmdb_line));
    if (p->page) p->scouted = clmdb_scouted_leaves;
  }
  p->page = page;
  p->next = page + p->page_size;
  if (p->scouted > 0) {
    p->scouted -= 1;
    uintptr_t found = clmdb_leaf_behind(p, cursor);
    if (found && found != p->next) {
      p->next = found;
      p->scouted = clmdb_scouted_leaves;
    }
  }
  p->asked = p->next + p->page_size;
  __builtin_prefetch((const void *)p->next);  // the head with the offsets
}

// Called with each record of a forward scan, before its value is read.
static inline void clmdb_prefetch(
    struct clmdb_prefetcher *p, MDB_cursor *cursor, const void *key) {
  uintptr_t page = (uintptr_t)key & ~(uintptr_t)(p->page_size - 1);
  if (page != p->page) clmdb_enter_leaf(p, cursor, page);
  uintptr_t end = p->asked - clmdb_lines_per_record * clmdb_line;
  if (end < p->next) end = p->next;
  while (p->asked > end) {
    p->asked -= clmdb_line;
    __builtin_prefetch((const void *)p->asked);
  }
}

// Asks for the line of an address, of any at all: nothing is read, and none is a fault.
static inline void clmdb_ask_for(uintptr_t address) { __builtin_prefetch((const void *)address); }

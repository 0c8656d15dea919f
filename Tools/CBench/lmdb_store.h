#pragma once
// What the files about liblmdb share.
#include "CBench.h"

#include <errno.h>
#include <lmdb.h>
#include <string.h>

struct cbench_lmdb {
  MDB_env *env;
  MDB_dbi records;
  MDB_txn *reader;     // reset while no read runs
  MDB_cursor *cursor;  // of `reader`, opened by the first scan
  MDB_cursor *scout;   // of `reader`, opened by the first prefetch that needs it
};

// Ends the function with a failed pass.
#define CBENCH_TRY(expression)                        \
  do {                                                \
    int code_ = (expression);                         \
    if (code_ != 0) {                                 \
      pass.code = code_;                              \
      pass.call = #expression;                        \
      return pass;                                    \
    }                                                 \
  } while (0)

static inline MDB_val cbench_key(const struct cbench_records *records, size_t index) {
  return (MDB_val){cbench_key_size, (void *)(records->keys + index * cbench_key_size)};
}

static inline MDB_val cbench_value(const struct cbench_records *records, size_t index) {
  return (MDB_val){
      records->offsets[index + 1] - records->offsets[index],
      (void *)(records->values + records->offsets[index])};
}

// Counts what allocates, by standing before the C library's functions in this program.
#include "CBench.h"
#include "interposing.h"

#if defined(CBENCH_INTERPOSES)
#include <errno.h>
#include <stdatomic.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void __libc_free(void *block);
void *__libc_memalign(size_t alignment, size_t size);

static atomic_int is_counting;
static atomic_uint_least64_t counted;

static void count(void) {
  if (atomic_load_explicit(&is_counting, memory_order_relaxed))
    atomic_fetch_add_explicit(&counted, 1, memory_order_relaxed);
}

void *malloc(size_t size) {
  count();
  return __libc_malloc(size);
}

void *calloc(size_t number, size_t size) {
  count();
  return __libc_calloc(number, size);
}

void *realloc(void *block, size_t size) {
  count();
  return __libc_realloc(block, size);
}

void free(void *block) { __libc_free(block); }

void *memalign(size_t alignment, size_t size) {
  count();
  return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
  count();
  return __libc_memalign(alignment, size);
}

int posix_memalign(void **block, size_t alignment, size_t size) {
  if (alignment % sizeof(void *) != 0 || (alignment & (alignment - 1)) != 0 || alignment == 0)
    return EINVAL;
  count();
  void *made = __libc_memalign(alignment, size);
  if (!made) return ENOMEM;
  *block = made;
  return 0;
}

int cbench_can_count_allocations(void) { return 1; }

void cbench_start_counting(void) {
  atomic_store(&counted, 0);
  atomic_store(&is_counting, 1);
}

uint64_t cbench_stop_counting(void) {
  atomic_store(&is_counting, 0);
  return atomic_load(&counted);
}
#else
int cbench_can_count_allocations(void) { return 0; }
void cbench_start_counting(void) {}
uint64_t cbench_stop_counting(void) { return 0; }
#endif

// Jobs of tasks, blocks of queues and alarms: one list, on one thread.
#define _GNU_SOURCE
#include "internal.h"

#if defined(MACHINE_WORKS)
#include <string.h>
#include <time.h>

// Of libdispatch and its blocks, as far as they pass through here: opaque, so that no header is needed.
typedef void *queue;
typedef const void *block;
typedef void (*function)(void *);
extern void dispatch_retain(queue), dispatch_release(queue);
void dispatch_sync(queue, block);
extern uint64_t dispatch_time(uint64_t when, int64_t delta);
extern block _Block_copy(block);
extern void _Block_release(block);
static const uint64_t no_time = 0, forever = UINT64_MAX;

#define SWIFT __attribute__((swiftcall))
typedef struct swift_job swift_job;
struct swift_executor {
  void *identity, *implementation;
};

typedef SWIFT void (*enqueue)(swift_job *);
typedef SWIFT void (*enqueue_delayed)(unsigned long long, swift_job *);
typedef SWIFT void (*enqueue_until)(long long, long long, long long, long long, int, swift_job *);
// Swift's runtime asks these, where they are set, instead of its own executors.
extern SWIFT void (*swift_task_enqueueGlobal_hook)(swift_job *, enqueue);
extern SWIFT void (*swift_task_enqueueMainExecutor_hook)(swift_job *, enqueue);
extern SWIFT void (*swift_task_enqueueGlobalWithDelay_hook)(
    unsigned long long, swift_job *, enqueue_delayed);
extern SWIFT void (*swift_task_enqueueGlobalWithDeadline_hook)(
    long long, long long, long long, long long, int, swift_job *, enqueue_until);
extern SWIFT void swift_job_run(swift_job *, struct swift_executor);
extern SWIFT struct swift_executor swift_task_getMainExecutor(void);

// Something that waits for its turn.
struct item {
  uint64_t time;    // not before
  uint64_t number;  // in the order of asking
  swift_job *job;
  bool is_main;
  queue queue;  // of a block
  block block;
  function function;  // of libdispatch's own kind of block
  void *context;
};

static struct item *items;
static size_t item_count, item_room;
static uint64_t last_number;
// Indices of what could run now, filled by `machine_ready_count`.
static size_t *ready;
static size_t ready_count;
static const char *standstill;

static void add(struct item item) {
  if (item_count == item_room) {
    item_room = item_room ? 2 * item_room : 64;
    items = realloc(items, item_room * sizeof *items);
    ready = realloc(ready, item_room * sizeof *ready);
    if (!items || !ready) abort();
  }
  item.number = ++last_number;
  items[item_count++] = item;
}

static uint64_t later(uint64_t nanoseconds) {
  uint64_t time;
  return __builtin_add_overflow(machine_now(), nanoseconds, &time) ? UINT64_MAX : time;
}

static SWIFT void global(swift_job *job, enqueue original) {
  (void)original;
  add((struct item){.job = job});
}

static SWIFT void main_executor(swift_job *job, enqueue original) {
  (void)original;
  add((struct item){.job = job, .is_main = true});
}

static SWIFT void delayed(
    unsigned long long nanoseconds, swift_job *job, enqueue_delayed original) {
  (void)original;
  add((struct item){.job = job, .time = later(nanoseconds)});
}

static SWIFT void until(
    long long seconds, long long nanoseconds, long long tolerance_seconds,
    long long tolerance_nanoseconds, int clock, swift_job *job, enqueue_until original) {
  (void)tolerance_seconds, (void)tolerance_nanoseconds, (void)clock, (void)original;
  // All clocks of tasks count from the same start.
  __int128 time = ((__int128)seconds - 1000) * 1000000000 + nanoseconds;
  add((struct item){
      .job = job, .time = time < 0 ? 0 : time > UINT64_MAX ? UINT64_MAX : (uint64_t)time});
}

void machine_start(uint64_t seed) {
  machine_seed_random(seed);
  swift_task_enqueueGlobal_hook = global;
  swift_task_enqueueMainExecutor_hook = main_executor;
  swift_task_enqueueGlobalWithDelay_hook = delayed;
  swift_task_enqueueGlobalWithDeadline_hook = until;
  machine_is_on = true;
  machine_is_its_thread = true;
}

// MARK: Queues

// Of libdispatch's times: with both highest bits it counts from 1970 and backwards, with the first alone
// from the start of the system, sleep included, with none without.
static uint64_t left_until(uint64_t when) {
  bool is_wall = when >> 62 == 3;
  struct timespec time;
  clock_gettime(is_wall ? CLOCK_REALTIME : CLOCK_MONOTONIC, &time);
  int64_t now = (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
  int64_t left = (is_wall ? -(int64_t)when : (int64_t)(when & ~(1ULL << 63))) - now;
  return left < 0 ? 0 : (uint64_t)left;
}

void dispatch_async(queue queue, block block) {
  REAL(dispatch_async);
  if (!machine_is_on) return real(queue, block);
  dispatch_retain(queue);
  add((struct item){.queue = queue, .block = _Block_copy(block)});
}

void dispatch_after(uint64_t when, queue queue, block block) {
  REAL(dispatch_after);
  if (!machine_is_on) return real(when, queue, block);
  if (when == forever) return;
  dispatch_retain(queue);
  add((struct item){
      .time = later(left_until(when)), .queue = queue, .block = _Block_copy(block)});
}

// Swift's runtime has its sleeping tasks woken by these.
void dispatch_async_f(queue queue, void *context, function function) {
  REAL(dispatch_async_f);
  if (!machine_is_on) return real(queue, context, function);
  add((struct item){.function = function, .context = context});
}

void dispatch_after_f(uint64_t when, queue queue, void *context, function function) {
  REAL(dispatch_after_f);
  if (!machine_is_on) return real(when, queue, context, function);
  if (when == forever) return;
  add((struct item){.time = later(left_until(when)), .function = function, .context = context});
}

// Swift's runtime has a queue made wider for its sleeping tasks, which libdispatch does on a thread.
void dispatch_queue_set_width(queue queue, long width) {
  REAL(dispatch_queue_set_width);
  if (!machine_is_on) real(queue, width);
}

// Timers of their own kind are not known here, so nobody may wait for one.
void *dispatch_source_create(const void *type, uintptr_t handle, uintptr_t mask, queue queue) {
  REAL(dispatch_source_create);
  if (machine_is_on && machine_is_its_thread) {
    machine_stand_still("a source of libdispatch was made, which no machine runs");
    abort();
  }
  return real(type, handle, mask, queue);
}

// Nobody else runs who could raise it.
long dispatch_semaphore_wait(void *semaphore, uint64_t timeout) {
  REAL(dispatch_semaphore_wait);
  if (!machine_is_on) return real(semaphore, timeout);
  long result = real(semaphore, no_time);
  if (result == 0) return 0;
  if (timeout == forever) {
    machine_stand_still("a semaphore was waited for that nobody is there to raise");
    abort();
  }
  int64_t left = (int64_t)(timeout - dispatch_time(no_time, 0));
  if (left > 0) machine_pass((uint64_t)left);
  return result;
}

void machine_stand_still(const char *what) {
  standstill = what;
  fprintf(stderr, "machine: %s\n", what);
}

const char *machine_standstill(void) { return standstill; }

// MARK: Running

size_t machine_ready_count(void) {
  ready_count = 0;
  for (size_t index = 0; index < item_count; index++) {
    if (items[index].time > machine_now()) continue;
    bool is_first = true;
    // A queue runs its blocks in their order.
    for (size_t before = 0; items[index].queue && before < ready_count && is_first; before++)
      is_first = items[ready[before]].queue != items[index].queue;
    if (is_first) ready[ready_count++] = index;
  }
  return ready_count;
}

static struct item take(size_t index) {
  struct item item = items[index];
  item_count--;
  memmove(&items[index], &items[index + 1], (item_count - index) * sizeof *items);
  ready_count = 0;
  return item;
}

// On this thread, as on the queue.
static void run_block(struct item item) {
  REAL(dispatch_sync);
  real(item.queue, item.block);
  _Block_release(item.block);
  dispatch_release(item.queue);
}

void machine_run(size_t index) {
  if (index >= ready_count) abort();
  struct item item = take(ready[index]);
  machine_pass(1000);
  if (item.block) return run_block(item);
  if (item.function) return item.function(item.context);
  struct swift_executor anywhere = {NULL, NULL};
  swift_job_run(item.job, item.is_main ? swift_task_getMainExecutor() : anywhere);
}

// Who waits for a queue waits for all that was put there before.
void dispatch_sync(queue queue, block block) {
  REAL(dispatch_sync);
  for (size_t index = 0; machine_is_on && index < item_count;) {
    if (items[index].queue == queue && items[index].time <= machine_now()) {
      run_block(take(index));
      index = 0;
    } else {
      index++;
    }
  }
  real(queue, block);
}

bool machine_wake(void) {
  // Who asked for a time in 30 years asked for never.
  static const uint64_t never = 1ULL << 60;
  uint64_t first = never;
  for (size_t index = 0; index < item_count; index++)
    if (items[index].time < first) first = items[index].time;
  if (first == never) return false;
  if (first > machine_now()) machine_pass(first - machine_now());
  return true;
}
#else
void machine_start(uint64_t seed) { (void)seed; }
size_t machine_ready_count(void) { return 0; }
void machine_run(size_t index) { (void)index; }
bool machine_wake(void) { return false; }
const char *machine_standstill(void) { return NULL; }
#endif

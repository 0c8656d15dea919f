// Loaded into tests that run under the thread sanitizer on Linux (LD_PRELOAD, see Tools/test); part
// of no product.
//
// `Synchronization.Mutex` is one atomic word. Its fast path is compiled into the caller, where the
// sanitizer sees it. Under contention it calls into the library, which is not instrumented: the
// sanitizer then sees a thread that enters without having acquired anything, and reports what the
// mutex protects as a race. These three stand in front of those calls and tell it.
//
// The names are the symbols of libswiftSynchronization.so; a method gets its value's address in the
// context register. Should a release of Swift name them otherwise, nothing is interposed, and the
// false reports come back.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>

#define SWIFT_METHOD __attribute__((swiftcall))
#define SELF __attribute__((swift_context)) void *

// Weak: processes that are not instrumented are started with this library too.
extern void __tsan_acquire(void *) __attribute__((weak));
extern void __tsan_release(void *) __attribute__((weak));

#define LOCK "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF"
#define TRY_LOCK "$s15Synchronization12_MutexHandleV12_tryLockSlowSbyF"
#define UNLOCK "$s15Synchronization12_MutexHandleV11_unlockSlowyyF"

static SWIFT_METHOD void (*library_lock)(uint32_t, SELF);
static SWIFT_METHOD bool (*library_try_lock)(SELF);
static SWIFT_METHOD void (*library_unlock)(SELF);

__attribute__((constructor)) static void find_library(void) {
  *(void **)&library_lock = dlsym(RTLD_NEXT, LOCK);
  *(void **)&library_try_lock = dlsym(RTLD_NEXT, TRY_LOCK);
  *(void **)&library_unlock = dlsym(RTLD_NEXT, UNLOCK);
}

SWIFT_METHOD void lock_slow(uint32_t thread, SELF mutex) __asm__(LOCK);
SWIFT_METHOD void lock_slow(uint32_t thread, SELF mutex) {
  library_lock(thread, mutex);
  if (__tsan_acquire) __tsan_acquire(mutex);
}

SWIFT_METHOD bool try_lock_slow(SELF mutex) __asm__(TRY_LOCK);
SWIFT_METHOD bool try_lock_slow(SELF mutex) {
  bool is_locked = library_try_lock(mutex);
  if (is_locked && __tsan_acquire) __tsan_acquire(mutex);
  return is_locked;
}

SWIFT_METHOD void unlock_slow(SELF mutex) __asm__(UNLOCK);
SWIFT_METHOD void unlock_slow(SELF mutex) {
  if (__tsan_release) __tsan_release(mutex);
  library_unlock(mutex);
}

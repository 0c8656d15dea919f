#pragma once
#include "machine.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define MACHINE_SANITIZED 1  // the sanitizers stand there themselves
#endif
#endif

#if defined(__linux__)
#include <features.h>
#endif

#if defined(__GLIBC__) && !defined(MACHINE_SANITIZED)
#define MACHINE_WORKS 1

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

// Whether the machine has been started.
extern bool machine_is_on;
// Whether this is the thread on which all jobs run; libdispatch may have one that manages it.
extern _Thread_local bool machine_is_its_thread;
// The next function of this name behind ours.
#define REAL(name) \
  static __typeof__(name) *real; \
  if (!real) real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

void machine_seed_random(uint64_t seed);
void machine_stand_still(const char *what);

// The device whose files a path or a descriptor leads to; -1: none.
int machine_device_of(const char *path);
// Counts a step of a device. 0: do it; else errno is set and it is not to be done.
int machine_step(int device, const char *name);
// A commit was done: the device may be planned to die right after it.
void machine_done(int device, const char *name);
#endif

#include "CBench.h"

#include <string.h>
#include <time.h>

uint64_t cbench_touch(const void *bytes, size_t count) {
  const uint8_t *at = bytes;
  uint64_t digest = 0, word;
  for (; count >= 8; at += 8, count -= 8) {
    memcpy(&word, at, 8);
    digest ^= word;
  }
  if (count > 0) {
    word = 0;
    memcpy(&word, at, count);
    digest ^= word;
  }
  return digest;
}

uint64_t cbench_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

const char *cbench_compiler(void) {
#if defined(__clang__)
  return "clang " __clang_version__;
#else
  return __VERSION__;
#endif
}

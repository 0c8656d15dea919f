#pragma once
// Whether this program may stand before functions of the C library, in order to count their calls.

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define CBENCH_SANITIZED 1  // the sanitizers stand there themselves
#endif
#endif

#if defined(__linux__)
#include <features.h>
#endif

#if defined(__GLIBC__) && !defined(CBENCH_SANITIZED)
#define CBENCH_INTERPOSES 1
#endif

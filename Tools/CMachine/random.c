// Randomness and time: the seed's and the machine's.
#define _GNU_SOURCE
#include "internal.h"

#if defined(MACHINE_WORKS)
#include <stdarg.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

bool machine_is_on;
_Thread_local bool machine_is_its_thread;

// The same before the start, too, so that hashing begins alike in every process.
static uint64_t state = 0x243f6a8885a308d3;
static uint64_t now;

// SplitMix64.
static uint64_t next_word(void) {
  uint64_t word = (state += 0x9e3779b97f4a7c15);
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9;
  word = (word ^ (word >> 27)) * 0x94d049bb133111eb;
  return word ^ (word >> 31);
}

static void fill(void *bytes, size_t count) {
  for (size_t done = 0; done < count; done += sizeof(uint64_t)) {
    uint64_t word = next_word();
    size_t rest = count - done;
    memcpy((char *)bytes + done, &word, rest < sizeof word ? rest : sizeof word);
  }
}

void machine_seed_random(uint64_t seed) {
  state = seed;
  now = 0;
}

// Of Swift's runtime: what `SystemRandomNumberGenerator` and `UUID()` ask.
void swift_stdlib_random(void *bytes, size_t count) { fill(bytes, count); }

int getentropy(void *bytes, size_t count) {
  fill(bytes, count);
  return 0;
}

ssize_t getrandom(void *bytes, size_t count, unsigned flags) {
  (void)flags;
  fill(bytes, count);
  return (ssize_t)count;
}

// Swift's standard library asks the kernel itself.
long syscall(long number, ...) {
  REAL(syscall);
  va_list rest;
  va_start(rest, number);
  long words[6];
  for (int index = 0; index < 6; index++) words[index] = va_arg(rest, long);
  va_end(rest);
  if (number == SYS_getrandom) return getrandom((void *)words[0], (size_t)words[1], 0);
  return real(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}

// MARK: Time

// Noon of 2026-01-01, and a machine that has been up for 1,000 seconds.
enum { epoch_seconds = 1767268800, up_seconds = 1000, second = 1000000000 };

uint64_t machine_now(void) { return now; }
void machine_pass(uint64_t nanoseconds) { now += nanoseconds; }

int clock_gettime(clockid_t clock, struct timespec *time) {
  if (!machine_is_its_thread) return (int)syscall(SYS_clock_gettime, clock, time);
  // Who asks again and again until it is later gets there.
  now += 100;
  bool is_wall = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
  time->tv_sec = (time_t)(now / second) + (is_wall ? epoch_seconds : up_seconds);
  time->tv_nsec = (long)(now % second);
  return 0;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
  (void)zone;
  struct timespec precise;
  int result = clock_gettime(CLOCK_REALTIME, &precise);
  time->tv_sec = precise.tv_sec;
  time->tv_usec = precise.tv_nsec / 1000;
  return result;
}

time_t time(time_t *result) {
  struct timespec precise;
  clock_gettime(CLOCK_REALTIME, &precise);
  if (result) *result = precise.tv_sec;
  return precise.tv_sec;
}

// Whoever sleeps on the only thread lets time pass, and nothing else.
int nanosleep(const struct timespec *wanted, struct timespec *left) {
  if (!machine_is_its_thread) return (int)syscall(SYS_nanosleep, wanted, left);
  now += (uint64_t)wanted->tv_sec * second + (uint64_t)wanted->tv_nsec;
  return 0;
}

int usleep(useconds_t microseconds) {
  struct timespec wanted = {microseconds / 1000000, (long)(microseconds % 1000000) * 1000};
  return nanosleep(&wanted, NULL);
}

double machine_real_seconds(void) {
  struct timespec time;
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / second;
}
#else
#include <time.h>
uint64_t machine_now(void) { return 0; }
void machine_pass(uint64_t nanoseconds) { (void)nanoseconds; }
double machine_real_seconds(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}
#endif

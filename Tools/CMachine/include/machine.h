#pragma once
// The machine that a simulated world runs on: one thread, and nothing from outside but a seed.
//
// It stands before the functions of the C library, of libdispatch, of Swift's runtime and of liblmdb
// through which a program gets threads, time, randomness and durability, in this program only. So the
// product runs as it is, without a switch for it: every job, block and alarm waits in one list until
// the owner of the machine runs it; clocks stand unless time is let pass; random numbers are the seed's;
// and each step that could be found on disk afterwards is counted, so that a device can die between
// any two of them. What a dead device tries then fails and leaves no trace.
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Whether this program can stand there; false under sanitizers, and elsewhere than with glibc.
bool machine_works(void);

// Starts this program again so that no address and no hash differs from run to run, unless it runs so
// already. Returns only then, or when it cannot be done.
void machine_settle(char *const *arguments);

// From here on nothing runs by itself. The clock says a fixed time.
void machine_start(uint64_t seed);

// MARK: Jobs, blocks, alarms

// How many things could run now: of a serial queue only the first.
size_t machine_ready_count(void);
// Runs one of them, to its end or to where it waits.
void machine_run(size_t index);
// Lets time pass until the next alarm, which is ready then; false when there is none.
bool machine_wake(void);
// Nanoseconds since the start.
uint64_t machine_now(void);
void machine_pass(uint64_t nanoseconds);
// What was asked for that could never end on one thread, or NULL: a lock or a semaphore that nobody
// would let go of.
const char *machine_standstill(void);

// MARK: Devices: directories whose files die together

enum { machine_device_max = 8 };

// All files below `directory` are the device's from now on.
void machine_add_device(int device, const char *directory);
// The device dies at its `steps`-th step from now on, 1 being the next: before it is done, or, where it
// is a commit, right after it. 0: it does not.
void machine_plan_death(int device, uint64_t steps, bool after);
void machine_kill(int device);
bool machine_is_dead(int device);
// What it was doing when it died.
const char *machine_last_step(int device);
// How many environments it has open.
int machine_open_count(int device);
// It may use its files again.
void machine_revive(int device);
// Steps so far, of all devices; and the commits among them.
uint64_t machine_step_count(void);
uint64_t machine_commit_count(void);
// While true no step is counted, so that looking changes nothing.
void machine_look(bool is_looking);

// MARK: Canaries: bytes that may lie only where they belong

// A canary is "~kanarie~", two hexadecimal digits, and "~".
enum { machine_canary_max = 256 };
struct machine_canaries {
  uint64_t words[4];
};
// Which ones lie in those bytes.
struct machine_canaries machine_find_canaries(const void *bytes, size_t count);

// What was written into files of environments since the last call, one directory after the other.
// Returns false when there is no more. The path stays good until the next call.
bool machine_next_writes(const char **directory, struct machine_canaries *found);

// MARK: Children

// Forks; 0 in the child. The caller has one thread.
int machine_fork(void);
// Waits for a child; its exit code, or 128 and the number of the signal. After `seconds` it is ended.
int machine_wait(int child, double seconds);
// The system's monotonic clock, in seconds, whatever the machine's says.
double machine_real_seconds(void);

#pragma once
// Counts the steps of this process at which what is on disk changes, and does something at one of them.
//
// A step is a call of the C library that changes a file or a directory, about to be made, and whatever
// the program itself calls one with `crash_steps_reach`.
#include <stddef.h>

enum crash_steps_action {
  crash_steps_count = 0,  // nothing; each step is said on standard output
  crash_steps_kill = 1,   // the process ends by SIGKILL
  crash_steps_fill = 2,   // the disk is filled with a file
};

// Whether calls of the C library can be seen in this build: not under a sanitizer, which stands there.
int crash_steps_sees_calls(void);

// Begins to count from 1. `ballast`: the file that `crash_steps_fill` makes as long as it can be.
void crash_steps_begin(unsigned long place, enum crash_steps_action action, const char *ballast);

// A step that the program names.
void crash_steps_reach(const char *name);

// Ends the counting and returns how many steps there were.
unsigned long crash_steps_end(void);

// Fills the disk under a new file, so that no byte is free.
void crash_steps_fill_disk(const char *ballast);

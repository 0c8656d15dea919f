// This program again: settled, or forked.
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if defined(MACHINE_WORKS)
#include <sys/personality.h>

bool machine_works(void) { return true; }

void machine_settle(char *const *arguments) {
  static const char name[] = "SWIFT_DETERMINISTIC_HASHING";
  if (getenv(name)) return;
  setenv(name, "1", 1);
  // A seed that traps is run again and again while its steps are made fewer.
  setenv("SWIFT_BACKTRACE", "enable=no", 0);
  // May be forbidden, and matters only to what depends on addresses.
  personality(ADDR_NO_RANDOMIZE);
  execv("/proc/self/exe", arguments);
}
#else
bool machine_works(void) { return false; }
void machine_settle(char *const *arguments) { (void)arguments; }
#endif

int machine_fork(void) { return fork(); }

int machine_wait(int child, double seconds) {
  double end = machine_real_seconds() + seconds;
  int status;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (machine_real_seconds() >= end) kill(child, SIGKILL);
    struct timespec pause = {0, 500000};
    nanosleep(&pause, NULL);
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

#include "switch/scheduling.hpp"

#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "switch/failure.hpp"

namespace fabricbench::emulated_switch {
namespace {

/// Goes before other threads, also before those of other sessions: where the kernel groups tasks by session
/// (autogroup), niceness counts only within a session and each session gets the same share, so the switch takes a
/// session of its own and has that one weigh more. Beside an endless loop on the same CPU, the 99th percentile of
/// lateness fell from 7.9 ms to 0.05 ms by this.
///
/// Not SCHED_FIFO: with normal tasks runnable on its CPU, the kernel's fair server stops a real-time thread for 50 ms
/// each second.
void go_first() {
  setsid();  // fails for a process group leader; a session that others are in is left as it is
  setpriority(PRIO_PROCESS, 0, -20);
  if (getsid(0) == getpid()) std::ofstream("/proc/self/autogroup") << "-20";
}

}  // namespace

void lock_memory() { mlockall(MCL_CURRENT | MCL_FUTURE); }

void claim_cpu(std::optional<int> cpu) {
  prctl(PR_SET_TIMERSLACK, 1);
  go_first();
  if (!cpu) return;
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (*cpu < CPU_SETSIZE) CPU_SET(static_cast<unsigned>(*cpu), &mask);
  if (sched_setaffinity(0, sizeof mask, &mask) != 0) {
    throw EnvironmentLacks("cpu " + std::to_string(*cpu) + " is not one that this process may run on");
  }
}

void leave_cpu(std::optional<int> cpu) {
  cpu_set_t mask;
  if (!cpu || sched_getaffinity(0, sizeof mask, &mask) != 0) return;
  CPU_CLR(static_cast<unsigned>(*cpu), &mask);
  if (CPU_COUNT(&mask) > 0) sched_setaffinity(0, sizeof mask, &mask);
}

}  // namespace fabricbench::emulated_switch

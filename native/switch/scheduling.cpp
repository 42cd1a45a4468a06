#include "switch/scheduling.hpp"

#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <string>

#include "switch/failure.hpp"

namespace fabricbench::emulated_switch {

void lock_memory() { mlockall(MCL_CURRENT | MCL_FUTURE); }

void claim_cpu(std::optional<int> cpu) {
  prctl(PR_SET_TIMERSLACK, 1);
  // Not SCHED_FIFO: with normal tasks runnable on its CPU, the kernel's fair server stops a real-time thread for 50 ms
  // each second.
  setpriority(PRIO_PROCESS, 0, -20);
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

// The computing load: an accelerator that is busy for so long, while its host has nothing to do but to drive MPI.
//
// Nothing is computed and no processor is taken for it: a load that burned the host's processors would be slower where
// ranks share them, as in the lab, and would then be measured as the network's fault. What overlaps is real: MPI has
// the bytes moved only by calls, which are made while the accelerator is busy, and there is no thread beside them.
//
// As on a stream of a GPU, loads follow each other without a gap unless the host let them wait: a host that comes late
// from a look after its messages does not make the next load late.
#pragma once

#include <time.h>

#include <algorithm>
#include <cstdint>

#include "base/clock.hpp"

namespace fabricbench::training {

inline void sleep_until(std::uint64_t deadline_ns) {
  const timespec deadline{static_cast<time_t>(deadline_ns / 1'000'000'000U),
                          static_cast<long>(deadline_ns % 1'000'000'000U)};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, nullptr);
}

class Accelerator {
 public:
  /// What comes next could not be given before now.
  void wait_for_host() { free_ns_ = std::max(free_ns_, Clock::now()); }

  /// Compute for so long. `drive(deadline)` looks after messages until then.
  template <class Drive>
  void compute(std::uint64_t ns, Drive drive) {
    free_ns_ += ns;
    drive(free_ns_);
  }

 private:
  std::uint64_t free_ns_ = 0;
};

}  // namespace fabricbench::training

// Bounds sleeps in the kernel at no cost to those that end in time: a timer interrupts this thread now and then, a
// sleeping call returns EINTR, and its caller looks at the clock. SO_RCVTIMEO would set and cancel a kernel timer in
// each receive, some 0.4 us of a round trip.
#pragma once

#include <time.h>

#include <cstdint>

#include "base/clock.hpp"

namespace fabricbench {

/// While it lives, system calls of this thread that sleep are interrupted this often. One at a time.
class Watchdog {
 public:
  explicit Watchdog(double period_seconds);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  timer_t timer_{};
};

/// How often to look so that a bound is kept well enough: a wait then ends within its bound and a quarter.
double watchdog_period(double bound_seconds);

/// How long a call has been interrupted; only looked at when it is, so waits that end in time pay nothing.
class Patience {
 public:
  bool is_over(std::uint64_t bound_ns) {
    const std::uint64_t now = KernelClock::now();
    if (first_look_ == 0) first_look_ = now;
    return now - first_look_ >= bound_ns;
  }

 private:
  std::uint64_t first_look_ = 0;
};

}  // namespace fabricbench

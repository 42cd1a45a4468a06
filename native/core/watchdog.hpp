// Two timers that bound what has no bound of its own, at no cost while all goes well. A Watchdog interrupts this thread
// now and then: a call that sleeps in the kernel returns EINTR, and its caller looks at the clock. SO_RCVTIMEO would
// set and cancel a kernel timer in each receive, some 0.4 us of a round trip. A HangAlarm ends a process that hangs in
// a call that nothing else ends: MPI's own calls wait for ever for a rank that has stopped.
#pragma once

#include <time.h>

#include <cstdint>
#include <optional>
#include <string>

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
    const std::uint64_t now = Clock::now();
    if (first_look_ == 0) first_look_ = now;
    return now - first_look_ >= bound_ns;
  }

 private:
  std::uint64_t first_look_ = 0;
};

/// Unless it is destroyed within `seconds`, says `message` on stderr and ends the process with `exit_code`; the starter
/// then ends the other ranks. They have a second to say the same: who says nothing is the one that hangs. One at a
/// time.
class HangAlarm {
 public:
  HangAlarm(std::optional<double> seconds, const std::string& message, int exit_code);
  ~HangAlarm();
  HangAlarm(const HangAlarm&) = delete;
  HangAlarm& operator=(const HangAlarm&) = delete;

 private:
  std::optional<timer_t> timer_;
};

}  // namespace fabricbench

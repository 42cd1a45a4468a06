// Pattern paced: a ping-pong that begins a round trip at a set interval. What a line that is idle in between costs
// (interrupt coalescing, sleeping processors, delayed sending) shows here and hides in a ping-pong without pauses.
#pragma once

#include <time.h>

#include "pattern/parameters.hpp"
#include "pattern/round_trip.hpp"

namespace fabricbench {

/// Sleeps until the next multiple of the interval; after a long round trip the next one begins at once.
class Pacer {
 public:
  explicit Pacer(double interval_seconds) : interval_ns_(static_cast<std::uint64_t>(interval_seconds * 1e9)) {}

  void before() {
    const std::uint64_t now = KernelClock::now();
    next_ = next_ + interval_ns_ < now ? now : next_ + interval_ns_;
    const timespec until{static_cast<time_t>(next_ / 1'000'000'000U), static_cast<long>(next_ % 1'000'000'000U)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
  }
  void led(std::uint32_t, std::uint64_t, std::uint64_t) {}
  void arrived(std::uint32_t) {}
  void departs(std::uint32_t) {}
  double seconds_of(double round_trip) const { return std::max(round_trip, static_cast<double>(interval_ns_) * 1e-9); }

 private:
  std::uint64_t interval_ns_;
  std::uint64_t next_ = 0;
};

class Paced {
 public:
  static constexpr std::size_t timing_member = leader;

  template <class T>
  static constexpr bool runs_over = Transport<T>;

  template <class Clock, Transport T>
  static Outcome run(T& path, Task& task) {
    const auto interval_us = static_cast<double>(whole_parameter(task.probe, "interval_us"));
    Rounds<Clock, T, Pacer> rounds(path, task, Pacer(interval_us * 1e-6));
    Outcome outcome;
    if (task.team.member() == leader) {
      outcome = lead_phases<Clock>(rounds, task);
    } else {
      follow_orders(rounds, task.team);
    }
    outcome.bytes_per_sample = 2 * task.probe.message_bytes;
    return outcome;
  }
};

}  // namespace fabricbench

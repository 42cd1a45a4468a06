// Pattern paced: a ping-pong that begins a round trip at a set interval. What a line that is idle in between costs
// (interrupt coalescing, sleeping processors, delayed sending) shows here and hides in a ping-pong without pauses.
#pragma once

#include <time.h>

#include <algorithm>
#include <random>

#include "core/parameters.hpp"
#include "pattern/round_trip.hpp"
#include "pattern/staged_rounds.hpp"

namespace fabricbench {

/// Sleeps until the next multiple of the interval; after a long round trip the next one begins at once. At random
/// intervals it sleeps for a pause of half to one and a half of the interval from now on, so that every message is
/// alone.
class Pacer {
 public:
  static constexpr bool answers_with_message = false;

  explicit Pacer(const Task& task)
      : interval_ns_(whole_parameter(task.probe, "interval_us") * 1'000),
        is_random_(word_parameter<words::Intervals>(task.probe, "intervals") == words::Intervals::random),
        random_(task.token) {}

  void before() {
    const std::uint64_t now = Clock::now();
    if (is_random_) {
      next_ = now + interval_ns_ / 2 + random_() % (interval_ns_ + 1);
    } else {
      next_ = next_ + interval_ns_ < now ? now : next_ + interval_ns_;
    }
    const timespec until{static_cast<time_t>(next_ / 1'000'000'000U), static_cast<long>(next_ % 1'000'000'000U)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
  }
  void led(std::uint32_t, std::uint64_t, std::uint64_t) {}
  void arrived(std::uint32_t) {}
  void departs(std::uint32_t, std::span<std::byte>) {}
  void answered() {}
  double seconds_of(double round_trip) const {
    const double interval = ns_to_seconds(interval_ns_);
    return is_random_ ? round_trip + interval : std::max(round_trip, interval);
  }

 private:
  std::uint64_t interval_ns_;
  bool is_random_;
  std::minstd_rand random_;  // 31 bits of nanoseconds are two seconds, as much as the longest pause varies
  std::uint64_t next_ = 0;
};

template <PeerTransport T>
class PacedOver {
 public:
  PacedOver(T& path, Task& task)
      : path_(path), task_(task), rounds_(path, task, with_stages(path, task, Pacer(task))) {}

  Outcome run() {
    Outcome outcome = run_rounds(rounds_, task_);
    outcome.bytes_per_sample = (OneSidedTransport<T> ? 1 : 2) * task_.probe.message_bytes;
    if constexpr (StagedTransport<T>) task_.findings.stages.push_back(stages_of(path_, task_));
    return outcome;
  }

 private:
  T& path_;
  Task& task_;
  Rounds<T, HooksOver<T, Pacer>> rounds_;
};

struct Paced {
  static constexpr std::size_t timing_member = leader;

  template <class T>
  static constexpr bool runs_over = PeerTransport<T>;

  template <class T>
  using Over = PacedOver<T>;
};

}  // namespace fabricbench

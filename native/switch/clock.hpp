// The switch reckons in CLOCK_MONOTONIC; the kernel stamps frames with CLOCK_REALTIME, which may be set while the
// switch runs.
#pragma once

#include <time.h>

#include <cstdint>

namespace fabricbench::emulated_switch {

inline std::int64_t read_clock_ns(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

inline std::int64_t read_monotonic_ns() { return read_clock_ns(CLOCK_MONOTONIC); }

/// What to add to CLOCK_MONOTONIC to get CLOCK_REALTIME. Changes only when somebody sets the clock: both are slewed
/// alike.
inline std::int64_t measure_realtime_offset_ns() {
  constexpr int kTries = 5;  // the closest pair of readings is not the one that an interrupt came between
  std::int64_t best_gap_ns = INT64_MAX;
  std::int64_t offset_ns = 0;
  for (int i = 0; i < kTries; ++i) {
    const std::int64_t before_ns = read_monotonic_ns();
    const std::int64_t realtime_ns = read_clock_ns(CLOCK_REALTIME);
    const std::int64_t after_ns = read_monotonic_ns();
    if (after_ns - before_ns >= best_gap_ns) continue;
    best_gap_ns = after_ns - before_ns;
    offset_ns = realtime_ns - (before_ns + best_gap_ns / 2);
  }
  return offset_ns;
}

}  // namespace fabricbench::emulated_switch

// Time stamps: CLOCK_MONOTONIC through the vdso. The processor's own counter, read with the fences that it needs, costs
// hardly less (benchmarks/clock_readings.cpp): no reason to build every pattern twice.
#pragma once

#include <time.h>

#include <cstdint>
#include <string>

namespace fabricbench {

/// The kernel's monotonic clock, in nanoseconds.
struct Clock {
  static std::uint64_t now() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(time.tv_nsec);
  }
};

constexpr std::uint64_t seconds_to_ns(double seconds) { return static_cast<std::uint64_t>(seconds * 1e9); }
constexpr double ns_to_seconds(std::uint64_t ns) { return static_cast<double>(ns) * 1e-9; }

inline std::int64_t read_clock_ns(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

/// What to add to CLOCK_MONOTONIC to get CLOCK_REALTIME, which the kernel stamps frames with. Changes only when
/// somebody sets the clock: both are slewed alike.
std::int64_t measure_realtime_offset_ns();

/// The clock of the samples and what the harness itself costs with it on this rank.
struct ClockInfo {
  std::string name;
  double resolution_ns = 0;
  double overhead_ns = 0;
  double loop_floor_ns = 0;
};

ClockInfo measure_clock();

}  // namespace fabricbench

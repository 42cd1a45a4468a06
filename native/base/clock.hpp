// Time stamps: CLOCK_MONOTONIC through the vdso, or the processor's time stamp counter where it is invariant and
// cheaper. Patterns are templates over the clock, so that reading it costs neither a branch nor a call. Stamps are in
// ticks; `Timebase` turns differences into nanoseconds outside the timed sections.
#pragma once

#include <time.h>

#include <cmath>
#include <cstdint>
#include <string>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace fabricbench {

/// The kernel's monotonic clock: one tick is one nanosecond.
struct KernelClock {
  static std::uint64_t now() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(time.tv_nsec);
  }
};

#if defined(__x86_64__)
/// The time stamp counter, fenced so that what is timed cannot slip past the stamp.
struct CounterClock {
  static std::uint64_t now() {
    _mm_lfence();
    const std::uint64_t ticks = __rdtsc();
    _mm_lfence();
    return ticks;
  }
};
inline constexpr bool has_counter_clock = true;
#else
using CounterClock = KernelClock;
inline constexpr bool has_counter_clock = false;
#endif

inline std::int64_t read_clock_ns(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

/// What to add to CLOCK_MONOTONIC to get CLOCK_REALTIME, which the kernel stamps frames with. Changes only when
/// somebody sets the clock: both are slewed alike.
std::int64_t measure_realtime_offset_ns();

/// How long a tick of the chosen clock is.
struct Timebase {
  double ns_per_tick = 1.0;

  std::uint64_t to_ns(std::uint64_t ticks) const {
    return static_cast<std::uint64_t>(std::llround(static_cast<double>(ticks) * ns_per_tick));
  }
  double to_seconds(std::uint64_t ticks) const { return static_cast<double>(ticks) * ns_per_tick * 1e-9; }
  std::uint64_t to_ticks(double seconds) const { return static_cast<std::uint64_t>(seconds * 1e9 / ns_per_tick); }
};

/// The clock that was chosen on this rank and what the harness itself costs with it.
struct ClockInfo {
  std::string name;
  bool is_counter = false;
  Timebase timebase;
  double resolution_ns = 0;
  double overhead_ns = 0;
  double loop_floor_ns = 0;
};

/// A reading of both clocks at one moment, from the attempt that was disturbed least.
struct ClockPair {
  std::uint64_t ns = 0;
  std::uint64_t ticks = 0;
};
ClockPair read_clock_pair();

/// Whether the kernel itself keeps its time by the processor's counter: where it has found that unstable, or different
/// between processors, it takes another clock, and nobody else should trust it.
bool kernel_trusts_counter(
    const std::string& clocksource = "/sys/devices/system/clocksource/clocksource0/current_clocksource");

/// Measure the clocks of this machine and choose the cheaper one of those that can be trusted. They are compared from a
/// reading on that lies 20 ms back at least, or is waited for: one from before MPI_Init costs no launch any time.
ClockInfo measure_clock(const ClockPair& first = read_clock_pair());

}  // namespace fabricbench

#include "base/clock.hpp"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace fabricbench {
namespace {

// Enough samples for a stable median in well under a millisecond; where a reading takes tens of microseconds (User-Mode
// Linux has no vdso) it shows in fewer.
constexpr std::size_t most_samples = 2001;
constexpr std::size_t fewest_samples = 51;
constexpr std::uint64_t enough_ns = 20'000'000;
// One overhead sample holds this many readings, so that the resolution of the clock does not show in it.
constexpr std::uint64_t readings_per_sample = 16;
// The counter is compared with the kernel's clock over this long at least: 50 ns of jitter are then 2.5 ppm.
constexpr std::uint64_t calibration_ns = 20'000'000;
// The counter must be clearly cheaper to be preferred to the clock that everybody knows.
constexpr double counter_advantage = 0.8;

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

template <class Clock>
ClockInfo measure(std::string name, Timebase timebase) {
  ClockInfo info{.name = std::move(name), .timebase = timebase};
  std::vector<double> overheads;
  std::vector<double> floors;
  overheads.reserve(most_samples);
  floors.reserve(most_samples);
  std::uint64_t smallest = std::numeric_limits<std::uint64_t>::max();
  const std::uint64_t first = Clock::now();
  while (floors.size() < most_samples) {
    const std::uint64_t begin = Clock::now();
    if (floors.size() >= fewest_samples && timebase.to_ns(begin - first) > enough_ns) break;
    std::uint64_t last = begin;
    for (std::uint64_t k = 0; k < readings_per_sample; ++k) last = Clock::now();
    overheads.push_back(static_cast<double>(last - begin) / static_cast<double>(readings_per_sample) *
                        timebase.ns_per_tick);

    const std::uint64_t start = Clock::now();
    asm volatile("" ::: "memory");
    const std::uint64_t ticks = Clock::now() - start;
    floors.push_back(static_cast<double>(ticks) * timebase.ns_per_tick);
    if (ticks > 0) smallest = std::min(smallest, ticks);
  }
  info.overhead_ns = median_of(overheads);
  info.loop_floor_ns = median_of(floors);
  info.resolution_ns = static_cast<double>(smallest) * timebase.ns_per_tick;
  return info;
}

bool has_invariant_counter() {
#if defined(__x86_64__)
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  constexpr unsigned power_management_leaf = 0x80000007;
  constexpr unsigned invariant_bit = 1U << 8U;
  return __get_cpuid(power_management_leaf, &eax, &ebx, &ecx, &edx) != 0 && (edx & invariant_bit) != 0;
#else
  return false;
#endif
}

}  // namespace

bool kernel_trusts_counter(const std::string& clocksource) {
  std::string name;
  std::ifstream(clocksource) >> name;
  return name == "tsc";
}

ClockPair read_clock_pair() {
  ClockPair best;
  std::uint64_t narrowest = std::numeric_limits<std::uint64_t>::max();
  for (int attempt = 0; attempt < 50; ++attempt) {
    const std::uint64_t before = CounterClock::now();
    const std::uint64_t ns = KernelClock::now();
    const std::uint64_t after = CounterClock::now();
    if (after - before < narrowest) {
      narrowest = after - before;
      best = {ns, before + (after - before) / 2};
    }
  }
  return best;
}

std::int64_t measure_realtime_offset_ns() {
  constexpr int tries = 5;  // the closest pair of readings is not the one that an interrupt came between
  std::int64_t best_gap_ns = std::numeric_limits<std::int64_t>::max();
  std::int64_t offset_ns = 0;
  for (int i = 0; i < tries; ++i) {
    const std::int64_t before_ns = read_clock_ns(CLOCK_MONOTONIC);
    const std::int64_t realtime_ns = read_clock_ns(CLOCK_REALTIME);
    const std::int64_t after_ns = read_clock_ns(CLOCK_MONOTONIC);
    if (after_ns - before_ns >= best_gap_ns) continue;
    best_gap_ns = after_ns - before_ns;
    offset_ns = realtime_ns - (before_ns + best_gap_ns / 2);
  }
  return offset_ns;
}

ClockInfo measure_clock(const ClockPair& first) {
  ClockInfo kernel = measure<KernelClock>("CLOCK_MONOTONIC", Timebase{});
  if (!has_counter_clock || !has_invariant_counter() || !kernel_trusts_counter()) return kernel;
  const std::uint64_t passed_ns = KernelClock::now() - first.ns;
  const timespec left{0, static_cast<long>(calibration_ns - std::min(passed_ns, calibration_ns))};
  if (left.tv_nsec > 0) nanosleep(&left, nullptr);
  const ClockPair second = read_clock_pair();
  const Timebase timebase{static_cast<double>(second.ns - first.ns) / static_cast<double>(second.ticks - first.ticks)};
  ClockInfo counter = measure<CounterClock>("TSC", timebase);
  counter.is_counter = true;
  return counter.overhead_ns < counter_advantage * kernel.overhead_ns ? counter : kernel;
}

}  // namespace fabricbench

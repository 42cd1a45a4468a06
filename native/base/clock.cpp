#include "base/clock.hpp"

#include <algorithm>
#include <limits>
#include <vector>

namespace fabricbench {
namespace {

// Enough samples for a stable median in well under a millisecond; where a reading takes tens of microseconds (User-Mode
// Linux has no vdso) it shows in fewer.
constexpr std::size_t most_samples = 2001;
constexpr std::size_t fewest_samples = 51;
constexpr std::uint64_t enough_ns = 20'000'000;
// One overhead sample holds this many readings, so that the resolution of the clock does not show in it.
constexpr std::uint64_t readings_per_sample = 16;

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

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

ClockInfo measure_clock() {
  ClockInfo info{.name = "CLOCK_MONOTONIC"};
  std::vector<double> overheads;
  std::vector<double> floors;
  overheads.reserve(most_samples);
  floors.reserve(most_samples);
  std::uint64_t smallest = std::numeric_limits<std::uint64_t>::max();
  const std::uint64_t first = Clock::now();
  while (floors.size() < most_samples) {
    const std::uint64_t begin = Clock::now();
    if (floors.size() >= fewest_samples && begin - first > enough_ns) break;
    std::uint64_t last = begin;
    for (std::uint64_t k = 0; k < readings_per_sample; ++k) last = Clock::now();
    overheads.push_back(static_cast<double>(last - begin) / static_cast<double>(readings_per_sample));

    const std::uint64_t start = Clock::now();
    asm volatile("" ::: "memory");
    const std::uint64_t time_ns = Clock::now() - start;
    floors.push_back(static_cast<double>(time_ns));
    if (time_ns > 0) smallest = std::min(smallest, time_ns);
  }
  info.overhead_ns = median_of(overheads);
  info.loop_floor_ns = median_of(floors);
  info.resolution_ns = static_cast<double>(smallest);
  return info;
}

}  // namespace fabricbench

// What a time stamp costs: the kernel's monotonic clock through the vdso, which samples are taken by, beside the
// processor's counter between the fences that keep what is timed from slipping past it.
//
//   g++ -O2 -std=c++20 -Inative benchmarks/clock_readings.cpp -o build/clock_readings && build/clock_readings
#include <x86intrin.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "base/clock.hpp"

namespace {

std::uint64_t read_counter() {
  _mm_lfence();
  const std::uint64_t ticks = __rdtsc();
  _mm_lfence();
  return ticks;
}

template <class Read>
double ns_of(Read read) {
  constexpr int readings = 1'000'000;
  const std::uint64_t begin = fabricbench::Clock::now();
  for (int i = 0; i < readings; ++i) {
    const std::uint64_t stamp = read();
    asm volatile("" ::"r"(stamp));
  }
  return static_cast<double>(fabricbench::Clock::now() - begin) / readings;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

}  // namespace

int main() {
  std::vector<double> clock;
  std::vector<double> counter;
  for (int turn = 0; turn < 21; ++turn) {
    clock.push_back(ns_of(fabricbench::Clock::now));
    counter.push_back(ns_of(read_counter));
  }
  std::printf("clock %.1f ns, counter %.1f ns: medians of 21 turns\n", median(clock), median(counter));
}

#include "mpi_operation/computing.hpp"

#include <algorithm>

#include "base/clock.hpp"

namespace fabricbench {
namespace {

// Long enough that reading the clock counts for little; the shortest of some, so that no interruption passes for it.
constexpr std::uint64_t trial_iterations = 50'000;
constexpr int trials = 7;

/// Each step needs the one before: it takes the latency of an addition and a multiplication, whatever the processor.
void compute(std::uint64_t iterations) {
  double value = 1.0;
  for (std::uint64_t i = 0; i < iterations; ++i) {
    value = value * 0.999999 + 1e-6;
    asm volatile("" : : "m"(value) : "memory");  // the result counts as used
  }
}

}  // namespace

void Computing::calibrate(std::int64_t time_ns) {
  std::uint64_t shortest_ns = ~std::uint64_t{0};
  for (int i = 0; i < trials; ++i) {
    const std::uint64_t begin = KernelClock::now();
    compute(trial_iterations);
    shortest_ns = std::min(shortest_ns, KernelClock::now() - begin);
  }
  const double iterations_per_ns = static_cast<double>(trial_iterations) / static_cast<double>(shortest_ns);
  iterations_ = static_cast<std::uint64_t>(static_cast<double>(time_ns) * iterations_per_ns);
}

void Computing::operator()() const { compute(iterations_); }

}  // namespace fabricbench

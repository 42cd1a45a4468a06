// The generator of the NAS Parallel Benchmarks: x' = a x mod 2^46 with a = 5^13, u = x / 2^46 in (0, 1), exact in
// doubles. A product of two 46-bit numbers modulo 2^46 is exact in wrapping 64-bit arithmetic, as 2^46 divides 2^64.
#pragma once

#include <cstdint>

namespace fabricbench::npb {

inline constexpr std::uint64_t random_multiplier = 1220703125;  // 5^13
inline constexpr std::uint64_t random_mask = (std::uint64_t{1} << 46U) - 1;
inline constexpr double random_scale = 0x1p-46;

/// multiplier^steps mod 2^46.
constexpr std::uint64_t random_power(std::uint64_t steps, std::uint64_t multiplier = random_multiplier) {
  std::uint64_t result = 1;
  for (; steps > 0; steps >>= 1U, multiplier = multiplier * multiplier & random_mask) {
    if ((steps & 1U) != 0) result = result * multiplier & random_mask;
  }
  return result;
}

/// A stream of uniform numbers. The seed itself is never delivered.
class Random {
 public:
  explicit constexpr Random(std::uint64_t seed) : state_(seed) {}
  /// Leave this many numbers out.
  constexpr void skip(std::uint64_t steps) { state_ = random_power(steps) * state_ & random_mask; }
  constexpr double next() {
    state_ = random_multiplier * state_ & random_mask;
    return static_cast<double>(state_) * random_scale;
  }
  constexpr std::uint64_t state() const { return state_; }

 private:
  std::uint64_t state_;
};

}  // namespace fabricbench::npb

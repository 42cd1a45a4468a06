// Contents that verification recognises: every block of every rank and turn has its own, and so has every element.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "core/measurement.hpp"
#include "pattern/payload.hpp"

namespace fabricbench {

/// Where a block of bytes comes from.
struct BlockName {
  std::uint64_t source = 0;
  std::uint64_t block = 0;
  std::uint64_t turn = 0;
};

/// Of the block of a single byte only the lowest bits of the seed are seen.
inline std::uint64_t seed_of(const BlockName& name) {
  return name.source * 5 + name.block * 3 + name.turn * 7 + (name.block << 20U) + (name.source << 40U);
}
inline void fill_block(std::span<std::byte> bytes, const BlockName& name) { fill_payload(bytes, seed_of(name)); }
inline bool is_block(std::span<const std::byte> bytes, const BlockName& name) {
  return is_payload(bytes, seed_of(name));
}

/// Whole numbers, so that sums are exact in whatever order the library adds: `weight_of(rank)` times this.
inline double element_value(std::uint64_t element, std::uint64_t turn) {
  constexpr std::uint64_t period = 251;  // prime: no power of two in a library's segments hides a shift
  return static_cast<double>(1 + (element * 7 + turn) % period);
}
inline double weight_of(int rank) { return static_cast<double>(rank + 1); }

/// The sum of the weights of the first ranks.
inline double weight_of_first(int ranks) { return static_cast<double>(ranks) * (static_cast<double>(ranks) + 1) / 2; }

inline void fill_vector(std::span<double> vector, int rank, std::uint64_t turn) {
  for (std::size_t i = 0; i < vector.size(); ++i) vector[i] = weight_of(rank) * element_value(i, turn);
}

/// Whether it is the sum over ranks whose weights add up to `weight`, from `first_element` of their vectors on.
inline bool is_sum(std::span<const double> vector, double weight, std::size_t first_element, std::uint64_t turn) {
  for (std::size_t i = 0; i < vector.size(); ++i) {
    if (vector[i] != weight * element_value(first_element + i, turn)) return false;
  }
  return true;
}

inline std::span<double> as_doubles(std::span<std::byte> bytes) {
  return {reinterpret_cast<double*>(bytes.data()), bytes.size() / sizeof(double)};
}

/// What a receive buffer holds before a call: nothing that any call brings.
inline void wipe(std::span<std::byte> bytes) { std::ranges::fill(bytes, std::byte{0xee}); }

inline void count_result(Counters& counters, bool is_right) {
  ++counters.verified;
  if (!is_right) ++counters.corrupted;
}

}  // namespace fabricbench

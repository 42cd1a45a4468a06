// Doubles that one instruction works on together, and how they come from memory and go back.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <utility>

namespace fabricbench::npb {

#ifdef __AVX512F__
inline constexpr std::size_t lanes = 8;
#else
inline constexpr std::size_t lanes = 4;
#endif

using Lanes = double __attribute__((vector_size(lanes * sizeof(double))));

inline Lanes load(const double* from) {
  Lanes value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

inline void store(double* to, Lanes value) { std::memcpy(to, &value, sizeof value); }

inline double sum(Lanes value) {
  double total = 0;
  for (std::size_t lane = 0; lane < lanes; ++lane) total += value[lane];
  return total;
}

namespace lanes_detail {

/// Swap the off-diagonal quarters of the blocks of 2 x distance lanes that two rows form.
template <std::size_t distance, std::size_t... lane>
void swap_quarters(Lanes& a, Lanes& b, std::index_sequence<lane...>) {
  const Lanes low = __builtin_shufflevector(a, b, ((lane & distance) != 0 ? lanes + lane - distance : lane)...);
  b = __builtin_shufflevector(a, b, ((lane & distance) != 0 ? lanes + lane : lane + distance)...);
  a = low;
}

template <std::size_t first, std::size_t... lane>
Lanes interleave_from(Lanes a, Lanes b, std::index_sequence<lane...>) {
  return __builtin_shufflevector(a, b, (first + lane / 2 + (lane % 2 != 0 ? lanes : 0))...);
}

template <std::size_t distance>
void transpose(std::array<Lanes, lanes>& rows) {
  for (std::size_t row = 0; row < lanes; ++row) {
    if ((row & distance) == 0)
      swap_quarters<distance>(rows[row], rows[row + distance], std::make_index_sequence<lanes>());
  }
  if constexpr (distance > 1) transpose<distance / 2>(rows);
}

}  // namespace lanes_detail

/// a0 b0 a1 b1 ..., the first half and the second.
inline std::array<Lanes, 2> interleave(Lanes a, Lanes b) {
  return {lanes_detail::interleave_from<0>(a, b, std::make_index_sequence<lanes>()),
          lanes_detail::interleave_from<lanes / 2>(a, b, std::make_index_sequence<lanes>())};
}

/// Lane i of result j is lane j of what lies at from[i] + offset.
inline std::array<Lanes, lanes> load_transposed(const std::array<double*, lanes>& from, std::size_t offset) {
  std::array<Lanes, lanes> rows;
  for (std::size_t row = 0; row < lanes; ++row) rows[row] = load(from[row] + offset);
  lanes_detail::transpose<lanes / 2>(rows);
  return rows;
}

}  // namespace fabricbench::npb

// Doubles that one instruction works on together, and how they come from memory and go back.
#pragma once

#include <cstddef>
#include <cstring>

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

}  // namespace fabricbench::npb

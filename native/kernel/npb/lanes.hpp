// As many doubles as one SIMD register holds, with arithmetic: the compiler's vector types. Line solvers put a line of
// the grid in each lane, so that recurrences along lines run side by side.
#pragma once

#include <cmath>
#include <cstddef>
#include <utility>

namespace fabricbench::npb {

#if defined(__AVX512F__)
inline constexpr int lane_count = 8;
#elif defined(__AVX__)
inline constexpr int lane_count = 4;
#else
inline constexpr int lane_count = 2;
#endif

using Lanes = double __attribute__((vector_size(lane_count * sizeof(double))));

/// The next multiple of the lane count.
constexpr int whole_lanes(int count) { return (count + lane_count - 1) / lane_count * lane_count; }

// The same at any address. Compilers let a vector stand for its elements in memory; unlike a copy of bytes such an
// access tells them that no pointer changes with it.
using LanesAnywhere = double __attribute__((vector_size(lane_count * sizeof(double)), aligned(alignof(double))));

[[gnu::always_inline]] inline Lanes load(const double* from) { return *reinterpret_cast<const LanesAnywhere*>(from); }

[[gnu::always_inline]] inline void store(double* to, const Lanes& value) {
  *reinterpret_cast<LanesAnywhere*>(to) = value;
}

inline Lanes broadcast(double value) { return value - Lanes{}; }

inline Lanes square_root(const Lanes& a) {
  Lanes out;
  for (int lane = 0; lane < lane_count; ++lane) out[lane] = std::sqrt(a[lane]);
  return out;
}

/// Call f with 0..count-1 as compile-time constants: loops over components whose bodies know their index.
template <int count, class Function>
[[gnu::always_inline]] constexpr void each(Function&& f) {
  [&]<int... index>(std::integer_sequence<int, index...>) __attribute__((always_inline)) {
    (f(std::integral_constant<int, index>{}), ...);
  }(std::make_integer_sequence<int, count>{});
}

namespace detail {

// Exchange, between two rows of a square, the blocks off the diagonal of size `step`.
template <int step, int... lane>
[[gnu::always_inline]] inline void exchange_blocks(Lanes& a, Lanes& b, std::integer_sequence<int, lane...>) {
  const Lanes low = __builtin_shufflevector(a, b, ((lane & step) == 0 ? lane : lane_count + lane - step)...);
  const Lanes high = __builtin_shufflevector(a, b, ((lane & step) == 0 ? lane + step : lane_count + lane)...);
  a = low;
  b = high;
}

}  // namespace detail

/// Transpose a square of lane_count vectors.
inline void transpose(Lanes (&square)[lane_count]) {
  each<3>([&](auto power) {
    constexpr int step = 1 << power;
    if constexpr (step < lane_count) {
      each<lane_count>([&](auto row) {
        if constexpr ((row & step) == 0) {
          detail::exchange_blocks<step>(square[row], square[row + step], std::make_integer_sequence<int, lane_count>{});
        }
      });
    }
  });
}

}  // namespace fabricbench::npb

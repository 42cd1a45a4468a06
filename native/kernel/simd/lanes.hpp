// As many doubles as one SIMD register holds, with arithmetic: the compiler's vector types. Line solvers and Fourier
// transforms put a line of the grid in each lane, so that what runs along lines runs side by side.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <span>
#include <utility>

namespace fabricbench::simd {

#if defined(__AVX512F__)
inline constexpr int lane_count = 8;
#elif defined(__AVX__)
inline constexpr int lane_count = 4;
#else
inline constexpr int lane_count = 2;
#endif

inline constexpr std::size_t lanes = lane_count;  // the same where sizes are meant

using Lanes = double __attribute__((vector_size(lane_count * sizeof(double))));

/// The next multiple of the lane count.
constexpr int whole_lanes(int count) { return (count + lane_count - 1) / lane_count * lane_count; }

// The same at any address. Compilers let a vector stand for its elements in memory; unlike a copy of bytes such an
// access tells them that no pointer changes with it.
using LanesAnywhere [[gnu::aligned(alignof(double))]] = Lanes;

[[gnu::always_inline]] inline Lanes load(const double* from) { return *reinterpret_cast<const LanesAnywhere*>(from); }

[[gnu::always_inline]] inline void store(double* to, const Lanes& value) {
  *reinterpret_cast<LanesAnywhere*>(to) = value;
}

inline Lanes broadcast(double value) { return value - Lanes{}; }

inline double sum(const Lanes& a) {
  double total = 0;
  for (int lane = 0; lane < lane_count; ++lane) total += a[lane];
  return total;
}

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

template <int first, int... lane>
[[gnu::always_inline]] inline Lanes every_other(const Lanes& a, const Lanes& b, std::integer_sequence<int, lane...>) {
  return __builtin_shufflevector(a, b, (first + 2 * lane)...);
}

template <int first, int... lane>
[[gnu::always_inline]] inline Lanes interleave_from(const Lanes& a, const Lanes& b,
                                                    std::integer_sequence<int, lane...>) {
  return __builtin_shufflevector(a, b, (first + lane / 2 + (lane % 2 != 0 ? lane_count : 0))...);
}

}  // namespace detail

/// a0 b0 a1 b1 ..., the first half and the second.
[[gnu::always_inline]] inline std::array<Lanes, 2> interleave(const Lanes& a, const Lanes& b) {
  constexpr std::make_integer_sequence<int, lane_count> all{};
  return {detail::interleave_from<0>(a, b, all), detail::interleave_from<lane_count / 2>(a, b, all)};
}

/// The other way: what is even and what is odd of two vectors.
[[gnu::always_inline]] inline std::array<Lanes, 2> deinterleave(const Lanes& a, const Lanes& b) {
  constexpr std::make_integer_sequence<int, lane_count> all{};
  return {detail::every_other<0>(a, b, all), detail::every_other<1>(a, b, all)};
}

/// Transpose a square of lane_count vectors.
[[gnu::always_inline]] inline void transpose(std::span<Lanes, lanes> square) {
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

/// Lane i of result j is lane j of what lies at from[i] + offset.
inline std::array<Lanes, lanes> load_transposed(const std::array<double*, lanes>& from, std::size_t offset) {
  std::array<Lanes, lanes> rows;
  for (std::size_t row = 0; row < lanes; ++row) rows[row] = load(from[row] + offset);
  transpose(rows);
  return rows;
}

}  // namespace fabricbench::simd

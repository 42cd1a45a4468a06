#include "kernel/simd/fft.hpp"

#include <cmath>
#include <numbers>
#include <utility>

namespace fabricbench::simd {
namespace {

template <int radix>
using Points = std::array<ComplexLanes, radix>;

/// Transforms of two, three and five points, in place and in order.
void butterfly(Points<2>& x) {
  const ComplexLanes sum = x[0] + x[1];
  x[1] = x[0] - x[1];
  x[0] = sum;
}

void butterfly(Points<3>& x) {
  constexpr double sine = 0.86602540378443864676;  // of a third of a turn
  const ComplexLanes sum = x[1] + x[2];
  const ComplexLanes rotated = times_i(sine * (x[1] - x[2]));
  const ComplexLanes middle = x[0] - 0.5 * sum;
  x[0] = x[0] + sum;
  x[1] = middle - rotated;
  x[2] = middle + rotated;
}

void butterfly(Points<5>& x) {
  constexpr double cosine_1 = 0.30901699437494742410;  // of one fifth of a turn and of two
  constexpr double cosine_2 = -0.80901699437494742410;
  constexpr double sine_1 = 0.95105651629515357212;
  constexpr double sine_2 = 0.58778525229247312917;
  const ComplexLanes sum_1 = x[1] + x[4];
  const ComplexLanes sum_2 = x[2] + x[3];
  const ComplexLanes difference_1 = x[1] - x[4];
  const ComplexLanes difference_2 = x[2] - x[3];
  const ComplexLanes middle_1 = x[0] + cosine_1 * sum_1 + cosine_2 * sum_2;
  const ComplexLanes middle_2 = x[0] + cosine_2 * sum_1 + cosine_1 * sum_2;
  const ComplexLanes rotated_1 = times_i(sine_1 * difference_1 + sine_2 * difference_2);
  const ComplexLanes rotated_2 = times_i(sine_2 * difference_1 - sine_1 * difference_2);
  x[0] = x[0] + sum_1 + sum_2;
  x[1] = middle_1 - rotated_1;
  x[2] = middle_2 - rotated_2;
  x[3] = middle_2 + rotated_2;
  x[4] = middle_1 + rotated_1;
}

/// How often a factor divides n, which is left without it.
std::size_t take_factor(std::size_t& n, std::size_t factor) {
  std::size_t times = 0;
  for (; n % factor == 0; n /= factor) ++times;
  return times;
}

}  // namespace

std::array<double, 2> unit_root(std::size_t k, std::size_t n) {
  k %= n;
  if (2 * k > n) {
    const auto [re, im] = unit_root(n - k, n);
    return {re, -im};
  }
  if (4 * k > n) {
    const auto [re, im] = unit_root(n - 2 * k, 2 * n);  // n/2 - k of n
    return {-re, im};
  }
  if (8 * k > n) {
    const auto [re, im] = unit_root(n - 4 * k, 4 * n);  // n/4 - k of n
    return {-im, -re};
  }
  const double angle = 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n);
  return {std::cos(angle), -std::sin(angle)};
}

bool has_transform(std::size_t n) {
  if (n == 0) return false;
  for (const std::size_t factor : {2U, 3U, 5U}) take_factor(n, factor);
  return n == 1;
}

Fft::Fft(std::size_t size) : size_(size) {
  std::size_t rest = size;
  std::size_t twos = take_factor(rest, 2);
  const std::size_t threes = take_factor(rest, 3);
  const std::size_t fives = take_factor(rest, 5);
  if (twos >= 2) {
    const bool is_odd = twos % 2 != 0;
    end_ = is_odd ? Ends::radix8 : Ends::radix4;
    twos -= is_odd ? 3 : 2;
  }
  if (twos >= 2) begin_ = Ends::radix4;
  std::size_t length = size;
  const auto add = [&](std::size_t radix, std::size_t times) {
    for (; times > 0; --times, length /= radix) {
      Pass pass{radix, length / radix, {}};
      for (std::size_t k = 0; k < pass.sections; ++k) {
        for (std::size_t power = 1; power < radix; ++power) pass.roots.push_back(unit_root(power * k, length));
      }
      passes_.push_back(std::move(pass));
    }
  };
  add(4, twos / 2);
  add(5, fives);
  add(3, threes);
  add(2, twos % 2);
}

template <int radix>
void Fft::odd_pass(std::size_t sections, std::size_t stride, const Root* roots, const double* from, double* to) {
  const fft_detail::FromScratch load_point{from};
  const fft_detail::ToScratch store_point{to};
  const std::size_t part = sections * stride;
  for (std::size_t section = 0; section < sections; ++section) {
    const Root* const powers = roots + (radix - 1) * section;
    for (std::size_t i = 0; i < stride; ++i) {
      Points<radix> x;
      each<radix>([&](auto q) { x[q] = load_point(section * stride + i + q * part); });
      butterfly(x);
      const std::size_t first = radix * section * stride + i;
      store_point(first, x[0]);
      each<radix - 1>(
          [&](auto q) { store_point(first + (q + 1) * stride, fft_detail::multiply(x[q + 1], powers[q])); });
    }
  }
}

double* Fft::middle_passes(double* from, double* to) const {
  std::size_t stride = begin_ == Ends::radix4 ? 4 : 1;
  for (std::size_t i = begin_ == Ends::radix4 ? 1 : 0; i < passes_.size(); ++i) {
    const auto& [radix, sections, roots] = passes_[i];
    if (radix == 4) {
      pass4(sections, stride, roots.data(), fft_detail::FromScratch{from}, fft_detail::ToScratch{to});
    } else if (radix == 5) {
      odd_pass<5>(sections, stride, roots.data(), from, to);
    } else if (radix == 3) {
      odd_pass<3>(sections, stride, roots.data(), from, to);
    } else {
      odd_pass<2>(sections, stride, roots.data(), from, to);
    }
    stride *= radix;
    std::swap(from, to);
  }
  return from;
}

}  // namespace fabricbench::simd

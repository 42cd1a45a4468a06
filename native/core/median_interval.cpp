#include "core/median_interval.hpp"

#include <algorithm>
#include <cmath>

namespace fabricbench {
namespace {

constexpr std::size_t most_exact = 1000;  // 2^-1000 is still a normal double

/// The z with P(Z > z) = tail, by bisection: called once for a cell, so exactness counts and speed does not.
double normal_quantile(double tail) {
  double low = 0;
  double high = 40;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (0.5 * std::erfc(middle / std::sqrt(2.0)) > tail ? low : high) = middle;
  }
  return (low + high) / 2;
}

/// How many of the smallest samples lie outside the interval: the most j with P(Binomial(n, 1/2) <= j - 1) <= tail.
std::size_t exact_outside(std::size_t count, double tail) {
  double probability = std::ldexp(1.0, -static_cast<int>(count));
  double cumulative = 0;
  std::size_t outside = 0;
  for (; outside <= count; ++outside) {
    cumulative += probability;
    if (cumulative > tail) break;
    probability *= static_cast<double>(count - outside) / static_cast<double>(outside + 1);
  }
  return outside;
}

std::size_t approximate_outside(std::size_t count, double tail) {
  const double n = static_cast<double>(count);
  return static_cast<std::size_t>(std::max(0.0, std::floor(n / 2 + 0.5 - normal_quantile(tail) * std::sqrt(n) / 2)));
}

std::uint64_t nth(std::span<std::uint64_t> samples, std::size_t position) {
  const auto at = samples.begin() + static_cast<std::ptrdiff_t>(position);
  std::nth_element(samples.begin(), at, samples.end());
  return *at;
}

}  // namespace

std::optional<MedianRanks> median_ranks(std::size_t count, double confidence, double inflation) {
  const double tail = (1 - confidence) / 2;
  std::size_t outside = count <= most_exact ? exact_outside(count, tail) : approximate_outside(count, tail);
  if (inflation > 1) {
    const double middle = (static_cast<double>(count) + 1) / 2;
    const double widened = middle - (middle - static_cast<double>(outside)) * std::sqrt(inflation);
    outside = widened < 1 ? 0 : static_cast<std::size_t>(widened);
  }
  if (outside == 0 || 2 * outside > count) return std::nullopt;
  return MedianRanks{outside - 1, count - outside};
}

std::optional<MedianInterval> median_interval(std::span<std::uint64_t> samples, double confidence, double inflation) {
  const auto ranks = median_ranks(samples.size(), confidence, inflation);
  if (!ranks) return std::nullopt;
  const std::size_t middle = samples.size() / 2;
  const std::uint64_t upper = nth(samples, middle);
  const std::uint64_t low = nth(samples.first(middle + 1), ranks->low);
  const std::uint64_t lower = samples.size() % 2 == 1 ? upper : nth(samples.first(middle), middle - 1);
  const std::uint64_t high = nth(samples.subspan(middle), ranks->high - middle);
  return MedianInterval{low, lower + (upper - lower) / 2, high};
}

}  // namespace fabricbench

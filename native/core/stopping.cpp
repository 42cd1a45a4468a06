#include "core/stopping.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

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

/// With fewer batches their variance is anybody's guess: its own relative error is the square root of 2 / (batches -
/// 1).
constexpr std::size_t least_batches = 16;

/// Sums over batches of one length, as they come.
struct BatchLevel {
  double squares = 0;  // of the deviations from what a batch holds on average
  std::size_t batches = 0;
  std::size_t first_half = 0;  // of the next longer batch
  bool has_first_half = false;
};

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

double variance_inflation(std::span<const std::uint64_t> samples, std::uint64_t median) {
  const auto above = static_cast<double>(std::ranges::count_if(samples, [&](auto sample) { return sample > median; }));
  const double share = above / static_cast<double>(samples.size());
  if (!(share > 0)) return 1;  // nothing lies above: all that vary are ties, and ties are no spread of the median
  std::array<BatchLevel, std::numeric_limits<std::size_t>::digits> levels{};
  for (const std::uint64_t sample : samples) {
    std::size_t sum = sample > median ? 1 : 0;
    double length = 1;
    for (BatchLevel& level : levels) {
      const double deviation = static_cast<double>(sum) - share * length;
      level.squares += deviation * deviation;
      ++level.batches;
      level.has_first_half = !level.has_first_half;
      if (level.has_first_half) {
        level.first_half = sum;
        break;
      }
      sum += level.first_half;
      length *= 2;
    }
  }
  double largest = 1;
  double length = 2;
  for (const BatchLevel& level : std::span(levels).subspan(1)) {  // single samples are what is compared with
    if (level.batches < least_batches) break;
    const double independent = static_cast<double>(level.batches - 1) * length * share * (1 - share);
    largest = std::max(largest, level.squares / independent);
    length *= 2;
  }
  return largest;
}

StoppingRule::StoppingRule(const Stopping& stopping, std::span<std::uint64_t> scratch)
    : stopping_(stopping), scratch_(scratch) {}

bool StoppingRule::is_within_width(const MedianInterval& interval) const {
  const double median = static_cast<double>(interval.median);
  const double width = stopping_.relative_width * median;
  return median - static_cast<double>(interval.low) <= width && static_cast<double>(interval.high) - median <= width;
}

bool StoppingRule::is_narrow(std::span<const std::uint64_t> samples) {
  std::ranges::copy(samples, scratch_.begin());
  const std::span<std::uint64_t> copied = scratch_.first(samples.size());
  const auto independent = median_interval(copied, stopping_.confidence);
  if (!independent || !is_within_width(*independent)) return false;
  const double inflation = variance_inflation(samples, independent->median);
  const auto widened = median_interval(copied, stopping_.confidence, inflation);
  return widened && is_within_width(*widened);
}

std::optional<StopReason> StoppingRule::decide(std::span<const std::uint64_t> samples, double elapsed_seconds) {
  const bool is_long_enough = elapsed_seconds >= std::min(stopping_.minimum_seconds, stopping_.maximum_seconds);
  if (is_long_enough && samples.size() >= stopping_.minimum_samples && is_narrow(samples)) return StopReason::width;
  if (samples.size() >= stopping_.maximum_samples) return StopReason::count;
  if (elapsed_seconds >= stopping_.maximum_seconds) return StopReason::time;
  return std::nullopt;
}

std::size_t StoppingRule::next_batch(std::size_t count, double elapsed_seconds, double seconds_per_sample) const {
  const std::size_t missing = stopping_.minimum_samples > count ? stopping_.minimum_samples - count : 0;
  const std::size_t wanted = std::max({missing, count / 2, std::size_t{1}});
  const std::size_t left = stopping_.maximum_samples > count ? stopping_.maximum_samples - count : 0;
  const double seconds_left = std::max(0.0, stopping_.maximum_seconds - elapsed_seconds);
  const double in_time = seconds_per_sample > 0 ? seconds_left / seconds_per_sample : static_cast<double>(left);
  const std::size_t affordable = in_time >= static_cast<double>(left) ? left : static_cast<std::size_t>(in_time) + 1;
  return std::min({wanted, left, affordable});
}

}  // namespace fabricbench

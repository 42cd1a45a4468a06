// The nonparametric confidence interval of a median, from order statistics.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace fabricbench {

/// Positions, counted from 0, of the two order statistics that enclose the median.
struct MedianRanks {
  std::size_t low;
  std::size_t high;
};

/// Which order statistics of n samples enclose the median with at least this confidence; nothing where n is too small.
/// Exact binomial up to 1000 samples, then its normal approximation. (Le Boudec, Performance Evaluation, appendix A.)
/// `inflation` is how many times larger the variance is than that of independent samples: the ranks lie further apart
/// by its square root.
std::optional<MedianRanks> median_ranks(std::size_t count, double confidence, double inflation = 1);

struct MedianInterval {
  std::uint64_t low;
  std::uint64_t median;
  std::uint64_t high;
};

/// The interval of some samples; they are reordered in place. Nothing where they are too few.
std::optional<MedianInterval> median_interval(std::span<std::uint64_t> samples, double confidence,
                                              double inflation = 1);

}  // namespace fabricbench

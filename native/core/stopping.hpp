// When a cell has been measured well enough, and how many samples to take before that is asked again: when the
// nonparametric confidence interval of the median, from order statistics, is narrow.
//
// Samples of a network come in regimes: for hundreds of them something else runs, and all are slower. An interval that
// takes them as independent is narrow long before the other regime has been seen. So it is widened by what dependence
// adds to the variance, and no cell ends by width before its minimum time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "core/plan.hpp"

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

/// How many times larger the variance of the samples' median is than if they were independent; at least 1.
///
/// The variance of a median is that of the mean of "above the median" (Bahadur 1966). That of its means over batches of
/// 1, 2, 4, ... samples in a row is compared with what independence would give, and the largest ratio counts (batch
/// means; Law and Kelton, Simulation Modeling and Analysis). One pass, no allocation. `median` is that of the samples.
double variance_inflation(std::span<const std::uint64_t> samples, std::uint64_t median);

class StoppingRule {
 public:
  /// `scratch` has room for all samples that there may be: deciding takes no memory, and none may lack while others
  /// wait.
  StoppingRule(const Stopping& stopping, std::span<std::uint64_t> scratch);

  /// Why the cell is to end now, or nothing. `samples` are all measured ones so far, in any unit.
  std::optional<StopReason> decide(std::span<const std::uint64_t> samples, double elapsed_seconds);

  /// How many samples to take before deciding again: half as many as there are, within what time and number leave.
  std::size_t next_batch(std::size_t count, double elapsed_seconds, double seconds_per_sample) const;

 private:
  bool is_narrow(std::span<const std::uint64_t> samples);
  bool is_within_width(const MedianInterval& interval) const;

  Stopping stopping_;
  std::span<std::uint64_t> scratch_;
};

}  // namespace fabricbench

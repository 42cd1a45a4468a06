// When a cell has been measured well enough, and how many samples to take before that is asked again.
//
// Samples of a network come in regimes: for hundreds of them something else runs, and all are slower. An interval that
// takes them as independent is narrow long before the other regime has been seen. So it is widened by what dependence
// adds to the variance, and no cell ends by width before its minimum time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/median_interval.hpp"
#include "core/plan.hpp"

namespace fabricbench {

/// How many times larger the variance of the samples' median is than if they were independent; at least 1.
///
/// The variance of a median is that of the mean of "above the median" (Bahadur 1966). That of its means over batches of
/// 1, 2, 4, ... samples in a row is compared with what independence would give, and the largest ratio counts (batch
/// means; Law and Kelton, Simulation Modeling and Analysis). One pass, no allocation. `median` is that of the samples.
double variance_inflation(std::span<const std::uint64_t> samples, std::uint64_t median);

class StoppingRule {
 public:
  /// Allocate what deciding needs, so that it costs no allocation between samples.
  explicit StoppingRule(const Stopping& stopping);

  /// Why the cell is to end now, or nothing. `samples` are all measured ones so far, in any unit.
  std::optional<StopReason> decide(std::span<const std::uint64_t> samples, double elapsed_seconds);

  /// How many samples to take before deciding again: half as many as there are, within what time and number leave.
  std::size_t next_batch(std::size_t count, double elapsed_seconds, double seconds_per_sample) const;

 private:
  bool is_narrow(std::span<const std::uint64_t> samples);
  bool is_within_width(const MedianInterval& interval) const;

  Stopping stopping_;
  std::vector<std::uint64_t> scratch_;
};

}  // namespace fabricbench

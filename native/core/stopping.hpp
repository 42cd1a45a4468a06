// When a cell has been measured well enough, and how many samples to take before that is asked again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/plan.hpp"

namespace fabricbench {

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

  Stopping stopping_;
  std::vector<std::uint64_t> scratch_;
};

}  // namespace fabricbench

#include "core/stopping.hpp"

#include <algorithm>

#include "core/median_interval.hpp"

namespace fabricbench {

StoppingRule::StoppingRule(const Stopping& stopping) : stopping_(stopping), scratch_(stopping.maximum_samples) {}

bool StoppingRule::is_narrow(std::span<const std::uint64_t> samples) {
  std::ranges::copy(samples, scratch_.begin());
  const auto interval = median_interval(std::span(scratch_).first(samples.size()), stopping_.confidence);
  if (!interval) return false;
  const double median = static_cast<double>(interval->median);
  const double width = stopping_.relative_width * median;
  return median - static_cast<double>(interval->low) <= width && static_cast<double>(interval->high) - median <= width;
}

std::optional<StopReason> StoppingRule::decide(std::span<const std::uint64_t> samples, double elapsed_seconds) {
  if (samples.size() >= stopping_.minimum_samples && is_narrow(samples)) return StopReason::width;
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

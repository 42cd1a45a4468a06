// One batch of EP: 2^16 pairs of uniform numbers made into Gaussian deviates and tallied. Everything that costs time
// in EP is here; ep.cpp deals batches to ranks.
#pragma once

#include <array>
#include <cstdint>

namespace fabricbench::npb {

inline constexpr std::uint64_t ep_seed = 271828183;
inline constexpr unsigned ep_log2_batch_pairs = 16;

/// What pairs amount to: the sums of |X| and |Y| over the deviates, and how many have floor(max(|X|, |Y|)) = l.
struct GaussianTally {
  double sum_x = 0;
  double sum_y = 0;
  std::array<std::uint64_t, 10> rings{};

  void add(const GaussianTally& other);
};

/// The tally of pairs [batch 2^16, (batch + 1) 2^16) of the stream.
GaussianTally tally_batch(std::uint64_t batch);

}  // namespace fabricbench::npb

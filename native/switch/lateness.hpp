// How late frames left: a histogram with logarithmic buckets, cheap enough for each frame. One thread adds, any may
// read.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>

namespace fabricbench::emulated_switch {

/// Buckets for times in nanoseconds, at most an eighth of their value wide.
struct LatenessBuckets {
  static constexpr unsigned kSubBits = 3;  // 8 buckets for each power of two
  static constexpr std::uint64_t kSubBuckets = 1U << kSubBits;
  static constexpr std::size_t kNumber = (64 - kSubBits + 1) * kSubBuckets;

  static constexpr std::size_t bucket_of(std::uint64_t value) {
    if (value < kSubBuckets) return value;
    const auto shift = static_cast<unsigned>(std::bit_width(value)) - kSubBits - 1;
    return (shift + 1) * kSubBuckets + ((value >> shift) & (kSubBuckets - 1));
  }

  static constexpr std::uint64_t upper_end(std::size_t bucket) {
    if (bucket < kSubBuckets) return bucket;
    const std::uint64_t shift = bucket / kSubBuckets - 1;
    return ((kSubBuckets + bucket % kSubBuckets + 1) << shift) - 1;
  }
};

class Lateness {
 public:
  struct Summary {
    std::uint64_t count;
    std::uint64_t p50;
    std::uint64_t p99;
    std::uint64_t maximum;
  };

  void add(std::int64_t late_ns) {
    const auto value = static_cast<std::uint64_t>(late_ns > 0 ? late_ns : 0);
    bump(buckets_[LatenessBuckets::bucket_of(value)]);
    if (value > maximum_.load(std::memory_order_relaxed)) maximum_.store(value, std::memory_order_relaxed);
  }

  /// Quantiles are the upper ends of their buckets.
  [[nodiscard]] Summary summary() const {
    std::uint64_t count = 0;
    for (const auto& bucket : buckets_) count += bucket.load(std::memory_order_relaxed);
    return {count, quantile(count, 50), quantile(count, 99), maximum_.load(std::memory_order_relaxed)};
  }

 private:
  static void bump(std::atomic<std::uint64_t>& counter) {
    counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }

  [[nodiscard]] std::uint64_t quantile(std::uint64_t count, std::uint64_t percent) const {
    const std::uint64_t rank = (count * percent + 99) / 100;
    const std::uint64_t maximum = maximum_.load(std::memory_order_relaxed);
    std::uint64_t seen = 0;
    for (std::size_t bucket = 0; bucket < LatenessBuckets::kNumber; ++bucket) {
      seen += buckets_[bucket].load(std::memory_order_relaxed);
      if (seen >= rank) return std::min(LatenessBuckets::upper_end(bucket), maximum);
    }
    return maximum;
  }

  std::array<std::atomic<std::uint64_t>, LatenessBuckets::kNumber> buckets_{};
  std::atomic<std::uint64_t> maximum_ = 0;
};

}  // namespace fabricbench::emulated_switch

// How late frames left: all of them in a histogram with logarithmic buckets, and those of each short window of time, so
// that one can tell later what the switch did while a cell was measured. The forwarding thread adds, the status thread
// reads and takes windows that are over: a ring with one writer and one reader. Adding a frame costs a comparison and a
// few counters; no lock, no call, no allocation.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

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

/// For how long some frame was held that should have left: the length of the union of all frames' times from when they
/// were due until they left. Whatever waits for frames, one after the other or side by side, is delayed by no more than
/// that, since at any one time the longest chain of what waits is held up by at most one of them.
class HeldTime {
 public:
  /// Stretches that are remembered. A frame is tried again for 5 ms at most, while those of other ports leave; what was
  /// due before the oldest stretch counts from its end on.
  static constexpr std::size_t kStretches = 512;

  /// Returns what a frame adds. `until_ns` never goes back.
  std::uint64_t add(std::int64_t due_ns, std::int64_t until_ns) {
    std::int64_t from_ns = std::max(due_ns, forgotten_ns_);
    if (until_ns <= from_ns) return 0;
    std::int64_t added_ns = until_ns - from_ns;
    while (number_ > 0 && newest().until_ns >= from_ns) {
      added_ns -= std::min(newest().until_ns, until_ns) - std::max(newest().from_ns, from_ns);
      from_ns = std::min(from_ns, newest().from_ns);
      until_ns = std::max(until_ns, newest().until_ns);
      --number_;
    }
    if (number_ == kStretches) {
      forgotten_ns_ = stretches_[first_].until_ns;
      first_ = (first_ + 1) % kStretches;
      --number_;
    }
    stretches_[(first_ + number_) % kStretches] = {from_ns, until_ns};
    ++number_;
    return static_cast<std::uint64_t>(added_ns);
  }

 private:
  struct Stretch {
    std::int64_t from_ns;
    std::int64_t until_ns;
  };

  [[nodiscard]] const Stretch& newest() const { return stretches_[(first_ + number_ - 1) % kStretches]; }

  std::array<Stretch, kStretches> stretches_{};  // apart from each other, a ring in the order of time
  std::size_t first_ = 0;
  std::size_t number_ = 0;
  std::int64_t forgotten_ns_ = std::numeric_limits<std::int64_t>::min();
};

/// What left in one window. Whatever is later than the last bucket (17 s) is counted there.
class LatenessWindow {
 public:
  static constexpr std::uint64_t kLargest = (1ULL << 34U) - 1;
  static constexpr std::size_t kBuckets = LatenessBuckets::bucket_of(kLargest) + 1;

  [[nodiscard]] std::int64_t begin_ns() const { return begin_ns_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t maximum() const { return maximum_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t held_ns() const { return held_ns_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint32_t frames(std::size_t bucket) const {
    return frames_[bucket].load(std::memory_order_relaxed);
  }

  void begin(std::int64_t begin_ns) {
    begin_ns_.store(begin_ns, std::memory_order_relaxed);
    maximum_.store(0, std::memory_order_relaxed);
    held_ns_.store(0, std::memory_order_relaxed);
    for (auto& bucket : frames_) bucket.store(0, std::memory_order_relaxed);
  }

  void hold(std::uint64_t held_ns) { held_ns_.store(this->held_ns() + held_ns, std::memory_order_relaxed); }

  void add(std::int64_t late_ns) {
    const auto value = std::min(static_cast<std::uint64_t>(late_ns > 0 ? late_ns : 0), kLargest);
    auto& bucket = frames_[LatenessBuckets::bucket_of(value)];
    bucket.store(bucket.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    if (value > maximum()) maximum_.store(value, std::memory_order_relaxed);
  }

 private:
  std::atomic<std::int64_t> begin_ns_ = 0;
  std::atomic<std::uint64_t> maximum_ = 0;
  std::atomic<std::uint64_t> held_ns_ = 0;
  std::array<std::atomic<std::uint32_t>, kBuckets> frames_{};
};

class LatenessSeries {
 public:
  /// Short against a cell (35 ms for most), so that several windows lie wholly within one; not so short that the file
  /// is full within a launch.
  static constexpr std::int64_t kWindowNs = 5'000'000;

  /// 10 s of traffic without a pause (2 MiB): the status thread takes windows twice a second, and may be held up.
  static constexpr std::size_t kSlots = 2048;

  /// From a frame's time to its being counted may pass the send, and a pre-emption meanwhile: so long a window that no
  /// frame has followed is not yet taken as over.
  static constexpr std::int64_t kGraceNs = 5'000'000;

  /// Counts a frame. `at_ns` never goes back.
  void add(std::int64_t at_ns, std::int64_t late_ns) {
    hold(at_ns - late_ns, at_ns);
    now_->add(late_ns);
  }

  /// Counts time in which something that was due had not left, of a frame that never did say. `until_ns` never goes
  /// back.
  void hold(std::int64_t due_ns, std::int64_t until_ns) {
    if (until_ns >= end_ns_) [[unlikely]]
      begin_window(until_ns);
    now_->hold(held_.add(due_ns, until_ns));
  }

  /// Hands every window that is over to `use`, the oldest first, and frees it. By the status thread alone.
  template <class Use>
  void take(std::int64_t now_ns, Use use) {
    const std::uint64_t begun = begun_.load(std::memory_order_acquire);
    for (std::uint64_t i = taken_.load(std::memory_order_relaxed); i < begun; ++i) {
      const LatenessWindow& window = slots_[i % kSlots];
      if (i + 1 == begun && now_ns < window.begin_ns() + kWindowNs + kGraceNs) return;
      use(window);
      taken_.store(i + 1, std::memory_order_release);
    }
  }

  /// Windows that found the ring full: the status thread did not come to take any for ten seconds.
  [[nodiscard]] std::uint64_t lost() const { return lost_.load(std::memory_order_relaxed); }

 private:
  void begin_window(std::int64_t at_ns) {
    const std::int64_t begin_ns = at_ns - at_ns % kWindowNs;
    end_ns_ = begin_ns + kWindowNs;
    const std::uint64_t begun = begun_.load(std::memory_order_relaxed);
    if (begun - taken_.load(std::memory_order_acquire) == kSlots) {
      lost_.store(lost() + 1, std::memory_order_relaxed);
      now_ = &unkept_;
      return;
    }
    now_ = &slots_[begun % kSlots];
    now_->begin(begin_ns);
    begun_.store(begun + 1, std::memory_order_release);
  }

  std::vector<LatenessWindow> slots_{kSlots};
  LatenessWindow unkept_;
  LatenessWindow* now_ = &unkept_;
  HeldTime held_;
  std::int64_t end_ns_ = std::numeric_limits<std::int64_t>::min();
  std::atomic<std::uint64_t> begun_ = 0;
  std::atomic<std::uint64_t> taken_ = 0;
  std::atomic<std::uint64_t> lost_ = 0;
};

}  // namespace fabricbench::emulated_switch

// What messages carry: payloads that verification recognises, and on unreliable layers numbers, followed by who
// receives them.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/measurement.hpp"

namespace fabricbench {

/// The bytes of a payload that every position and every message has its own part in, one after the other.
class PayloadBytes {
 public:
  explicit PayloadBytes(std::uint64_t seed) : state_(seed) {}

  std::byte next() {
    if (position_ % sizeof state_ == 0) state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return static_cast<std::byte>(state_ >> (8 * (position_++ % sizeof state_)));
  }

 private:
  std::uint64_t state_;
  std::size_t position_ = 0;
};

inline void fill_payload(std::span<std::byte> payload, std::uint64_t seed) {
  PayloadBytes bytes(seed);
  for (std::byte& each : payload) each = bytes.next();
}

/// Whether it came as `fill_payload` made it. Takes no memory: who compares must not fail alone.
inline bool is_payload(std::span<const std::byte> payload, std::uint64_t seed) {
  PayloadBytes bytes(seed);
  return std::ranges::all_of(payload, [&](std::byte each) { return each == bytes.next(); });
}

inline constexpr std::uint64_t turning_seed = 1;

/// What an answer holds where messages are verified: to every byte an odd number is added that belongs to its place,
/// and its bits move on, so that what both ways do alike to a message does not undo itself. Complements and bytes that
/// changed places show in the sum (and would not where twice the number is 0), a flipped first bit in the moving alone.
inline void turn_payload(std::span<std::byte> payload) {
  PayloadBytes numbers(turning_seed);
  for (std::byte& each : payload) {
    const unsigned sum = std::to_integer<unsigned>(each) + (std::to_integer<unsigned>(numbers.next()) | 1U);
    each = std::byte{std::rotl(static_cast<std::uint8_t>(sum), 3)};
  }
}

/// Follows the sequence numbers of a stream and counts what did not come as it was sent.
class SequenceTracker {
 public:
  explicit SequenceTracker(std::uint32_t first) : first_(first), next_(first) { seen_.fill(first - 1); }

  /// Note an arrival; false where it was a double.
  bool note(std::uint32_t sequence) {
    std::uint32_t& slot = seen_[sequence % seen_.size()];
    if (sequence == next_) [[likely]] {
      ++next_;
    } else if (sequence - next_ < half_of_all) {
      next_ = sequence + 1;
    } else if (slot == sequence) {
      ++duplicated_;
      return false;
    } else {
      ++reordered_;
    }
    slot = sequence;
    ++arrived_;
    return true;
  }

  /// Count from here on.
  void start_counting() {
    first_ = next_;
    arrived_ = reordered_ = duplicated_ = 0;
  }

  Counters counters() const {
    const std::uint64_t sent = next_ - first_;
    return {.sent = sent, .lost = sent - std::min(sent, arrived_), .reordered = reordered_, .duplicated = duplicated_};
  }

 private:
  static constexpr std::uint32_t half_of_all = 1U << 31U;
  std::uint32_t first_;
  std::uint32_t next_;
  std::uint64_t arrived_ = 0;
  std::uint64_t reordered_ = 0;
  std::uint64_t duplicated_ = 0;
  std::array<std::uint32_t, 1024>
      seen_{};  // the last number that was seen in each slot: enough for any real reordering
};

}  // namespace fabricbench

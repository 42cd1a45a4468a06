// How long send() takes to hand a frame over, learned from the kernel's own time stamps. Pure; the stamps are taken by
// packet_sockets.hpp.
//
// Calling send() at a frame's release time would deliver it late by what the call costs: building the buffer and
// copying the frame (1 to 3 us, more for long frames, more on slower machines). So the cost is learned: now and then a
// frame is sent with a transmit time stamp, and the estimate for its size class steps towards what was seen. Equal
// steps up and down settle at the median, which a preempted call now and then cannot move.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

namespace fabricbench::emulated_switch {

class SendCost {
 public:
  /// More is no cost of sending but a machine that stood still.
  static constexpr std::int64_t kLargestNs = 20'000;

  SendCost() {
    for (std::size_t i = 0; i < classes_.size(); ++i) {
      classes_[i].estimate_ns = kFirstGuessNs + (static_cast<std::int64_t>(64) << i) / kCopiedBytesPerNs;
    }
  }

  [[nodiscard]] std::int64_t estimate_ns(std::size_t frame_bytes) const {
    return classes_[class_of(frame_bytes)].estimate_ns;
  }

  /// Whether the next frame of that size should be stamped: the first ones of a size all, later one in 64, as a stamp
  /// costs about 1 us.
  [[nodiscard]] bool wants_sample(std::size_t frame_bytes) {
    SizeClass& size = classes_[class_of(frame_bytes)];
    return size.samples < kCoarseSamples || ++size.since_sample >= kFramesPerSample;
  }

  void learn(std::size_t frame_bytes, std::int64_t cost_ns) {
    SizeClass& size = classes_[class_of(frame_bytes)];
    const std::int64_t step_ns = size.samples < kCoarseSamples ? kCoarseStepNs : kFineStepNs;
    size.estimate_ns =
        std::clamp(size.estimate_ns + (cost_ns > size.estimate_ns ? step_ns : -step_ns), std::int64_t{0}, kLargestNs);
    ++size.samples;
    size.since_sample = 0;
  }

 private:
  static constexpr std::int64_t kFirstGuessNs = 1'000;
  static constexpr std::int64_t kCopiedBytesPerNs = 8;
  static constexpr std::int64_t kCoarseStepNs = 60;
  static constexpr std::int64_t kFineStepNs = 10;
  static constexpr std::uint32_t kCoarseSamples = 64;
  static constexpr std::uint32_t kFramesPerSample = 64;

  struct SizeClass {
    std::int64_t estimate_ns = 0;
    std::uint32_t samples = 0;
    std::uint32_t since_sample = 0;
  };

  /// Classes are powers of two: up to 127 bytes, up to 255, ..., from 32768 on.
  static std::size_t class_of(std::size_t frame_bytes) {
    const auto width = static_cast<std::size_t>(std::bit_width(frame_bytes));
    return std::clamp<std::size_t>(width, 7, 16) - 7;
  }

  std::array<SizeClass, 10> classes_;
};

}  // namespace fabricbench::emulated_switch

// A row for each frame whose stages are measured (transport/staged.hpp): when it arrived, what its links alone would
// take, when it was due and when it left. Whoever measures marks its packets, so that nobody has to tell the switch
// when a cell begins or ends, and other traffic costs it a look at two fields. The forwarding thread adds, the status
// thread takes: a ring with one writer and one reader.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "switch/frame.hpp"

namespace fabricbench::emulated_switch {

/// `wire_ns` is what its links take, with the time that the host's own link carried frames before it: those of the same
/// message, of one in several frames. `sent_ns` is when the node could see it. Times are of CLOCK_MONOTONIC.
struct FrameCrossing {
  std::int64_t arrival_ns;
  std::int64_t wire_ns;
  std::int64_t due_ns;
  std::int64_t sent_ns;
};

/// The same of a packet of IPv4 without options in a frame: by the time to live that marks it
/// (transport/internet.hpp), and no mere acknowledgement of TCP.
inline bool is_measured_packet(const std::uint8_t* frame, std::uint32_t bytes) {
  constexpr std::uint8_t marking_time_to_live = 77;
  constexpr std::uint8_t tcp = 6;
  constexpr std::uint32_t headers_bytes = 14 + 20;
  if (bytes < headers_bytes || frame[14] != 0x45 || frame[22] != marking_time_to_live) return false;
  if (frame[23] != tcp) return true;
  const std::optional<TcpSegment> segment = tcp_segment(frame, bytes);
  return segment && segment->payload_bytes > 0;
}

/// The same of a frame of layer frame: by the number of its message (transport/frame.hpp), which lies behind the token
/// as the machine stores it, whose processor forwards as well.
inline bool is_measured_message(const std::uint8_t* frame, std::uint32_t bytes) {
  constexpr std::uint32_t number_at = 14 + 4;
  constexpr std::uint32_t marking_bit = 1U << 31U;
  std::uint32_t number = 0;
  if (bytes < number_at + sizeof number) return false;
  std::memcpy(&number, frame + number_at, sizeof number);
  return (number & marking_bit) != 0;
}

/// Whether a frame is one whose stages are measured, and carries something.
inline bool is_measured(const std::uint8_t* frame, std::uint32_t bytes) {
  constexpr std::uint32_t ethernet_bytes = 14;
  constexpr unsigned ipv4 = 0x0800;
  constexpr unsigned local_experimental_1 = 0x88b5;
  constexpr unsigned local_experimental_2 = 0x88b6;
  if (bytes < ethernet_bytes) return false;
  const unsigned type = static_cast<unsigned>(frame[12]) << 8U | frame[13];
  if (type == ipv4) return is_measured_packet(frame, bytes);
  const bool is_of_layer_frame = type == local_experimental_1 || type == local_experimental_2;
  return is_of_layer_frame && is_measured_message(frame, bytes);
}

class CrossingSeries {
 public:
  /// 2 MiB: 65,536 frames in the half second between two visits of the status thread are more than a ping-pong has.
  static constexpr std::size_t kRows = 1U << 16U;

  void add(const FrameCrossing& crossing) {
    const std::uint64_t added = added_.load(std::memory_order_relaxed);
    if (added - taken_.load(std::memory_order_acquire) == kRows) return;  // the message of the frame is not complete
    rows_[added % kRows] = crossing;
    added_.store(added + 1, std::memory_order_release);
  }

  /// Hands every row to `use`, the oldest first. By the status thread alone.
  template <class Use>
  void take(Use use) {
    const std::uint64_t added = added_.load(std::memory_order_acquire);
    for (std::uint64_t i = taken_.load(std::memory_order_relaxed); i < added; ++i) use(rows_[i % kRows]);
    taken_.store(added, std::memory_order_release);
  }

 private:
  std::vector<FrameCrossing> rows_{kRows};
  std::atomic<std::uint64_t> added_ = 0;
  std::atomic<std::uint64_t> taken_ = 0;
};

}  // namespace fabricbench::emulated_switch

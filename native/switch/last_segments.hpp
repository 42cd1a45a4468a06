// Which frames end a TCP message of about one size, to be held: a known fault, as a kernel had it behind the dip that
// NIST found in throughput at 31 KiB (the study of 1999). Linux marks the last segment of what one call sends (PSH), so
// that what a connection carried since the last mark is a message. The forwarding thread alone asks; no memory is asked
// for.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "switch/frame.hpp"

namespace fabricbench::emulated_switch {

/// The last segment of a message whose size is within `within_bytes` of `message_bytes` waits for `hold_ns`.
struct HoldRule {
  std::int64_t message_bytes;
  std::int64_t within_bytes;
  std::int64_t hold_ns;
};

class LastSegments {
 public:
  explicit LastSegments(const std::optional<HoldRule>& rule) : rule_(rule) {}

  /// How long a frame is to be held. To be asked of each frame once, in their order.
  std::int64_t hold_ns(const std::uint8_t* frame, std::uint32_t bytes) {
    if (!rule_) [[likely]]
      return 0;
    const std::optional<TcpSegment> segment = tcp_segment(frame, bytes);
    if (!segment || segment->payload_bytes == 0) return 0;
    Connection& own = connections_[segment->connection % connections_.size()];
    if (own.name != segment->connection) own = {segment->connection, 0};
    own.message_bytes += segment->payload_bytes;
    if (!segment->ends_message) return 0;
    const std::int64_t off_bytes = std::abs(own.message_bytes - rule_->message_bytes);
    own.message_bytes = 0;
    return off_bytes <= rule_->within_bytes ? rule_->hold_ns : 0;
  }

 private:
  /// One direction of a connection, and what it carried since the last mark. Two that fall into one place forget each
  /// other's messages: some are then not held.
  struct Connection {
    std::uint64_t name = 0;
    std::int64_t message_bytes = 0;
  };

  std::optional<HoldRule> rule_;
  std::array<Connection, 1024> connections_{};
};

}  // namespace fabricbench::emulated_switch

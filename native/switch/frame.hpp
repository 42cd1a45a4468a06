// A frame on its way through the switch: as a ring hands it over, the port that it goes to (a static table of MAC
// addresses), and how its sending went.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <unordered_map>

namespace fabricbench::emulated_switch {

/// As a ring hands it over.
struct ReceivedFrame {
  std::uint32_t slot;
  std::uint32_t bytes;      // as sent, Ethernet header included
  std::int64_t arrival_ns;  // CLOCK_REALTIME
  bool is_whole;            // false where the frame is longer than a slot
  bool has_checksum;        // false where the sender left its checksum to hardware that does not exist
};

/// A MAC address in the lower 48 bits, in the byte order of memory.
using Mac = std::uint64_t;

/// Who is behind which port.
class ForwardingTable {
 public:
  /// Returns false where the address is already behind a port.
  bool learn(Mac mac, std::size_t port) { return ports_.emplace(mac, port).second; }

  /// The port behind which the frame's destination is; nothing for broadcast, multicast and unknown addresses: those
  /// flood.
  [[nodiscard]] std::optional<std::size_t> port_of(const std::uint8_t* frame) const {
    const auto found = ports_.find(destination_of(frame));
    return found == ports_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  static Mac destination_of(const std::uint8_t* frame) {
    Mac mac = 0;
    std::memcpy(&mac, frame, 6);
    return mac;
  }

  std::unordered_map<Mac, std::size_t> ports_;
};

/// What the switch looks at of a TCP segment. `connection` names its addresses and ports, one direction of them.
struct TcpSegment {
  std::uint64_t connection;
  std::int64_t payload_bytes;
  bool ends_message;
};

/// The segment in a frame; nothing where it holds none: IPv4 without options or fragments.
inline std::optional<TcpSegment> tcp_segment(const std::uint8_t* frame, std::uint32_t bytes) {
  constexpr std::uint8_t tcp = 6;
  constexpr std::uint8_t push = 0x08;
  constexpr std::uint32_t ethernet_bytes = 14;
  constexpr std::uint32_t ip_bytes = 20;
  if (bytes < ethernet_bytes + 2 * ip_bytes || frame[12] != 0x08 || frame[13] != 0 || frame[14] != 0x45) return {};
  const bool is_fragment = (frame[20] & 0x3fU) != 0 || frame[21] != 0;
  if (frame[23] != tcp || is_fragment) return {};
  const std::uint32_t total = static_cast<std::uint32_t>(frame[16]) << 8U | frame[17];
  const std::uint32_t tcp_bytes = static_cast<std::uint32_t>(frame[46] >> 4U) * 4;
  std::uint64_t addresses = 0;
  std::uint32_t ports = 0;
  std::memcpy(&addresses, frame + 26, sizeof addresses);
  std::memcpy(&ports, frame + 34, sizeof ports);
  constexpr std::uint64_t odd = 0x9e3779b97f4a7c15U;  // spreads what differs in a few bits over all
  const std::uint64_t connection = (addresses ^ (std::uint64_t{ports} * odd)) * odd >> 8U;
  return TcpSegment{connection, std::int64_t{total} - ip_bytes - tcp_bytes, (frame[47] & push) != 0};
}

/// How a send went.
enum class Sending {
  done,
  later,    // the socket's buffer is full of frames that the receiving node's stack has not taken up yet
  refused,  // the interface is down, gone, or does not take frames
};

}  // namespace fabricbench::emulated_switch

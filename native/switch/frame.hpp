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

/// How a send went.
enum class Sending {
  done,
  later,    // the socket's buffer is full of frames that the receiving node's stack has not taken up yet
  refused,  // the interface is down, gone, or does not take frames
};

}  // namespace fabricbench::emulated_switch

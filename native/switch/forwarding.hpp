// Who is behind which port: a static table of MAC addresses. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <unordered_map>

namespace fabricbench::emulated_switch {

/// A MAC address in the lower 48 bits, in the byte order of memory.
using Mac = std::uint64_t;

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

}  // namespace fabricbench::emulated_switch

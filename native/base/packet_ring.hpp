// The receive ring that a packet socket shares with the kernel (TPACKET_V2, packet(7)): slots that the kernel fills in
// order, each with a header whose status says whose it is.
#pragma once

#include <linux/if_packet.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/mapping.hpp"
#include "base/socket.hpp"

namespace fabricbench {

class PacketRing {
 public:
  /// For frames up to `frame_bytes`, in about `ring_bytes` of memory. Failure where the kernel has none to spare.
  PacketRing(const Descriptor& socket, std::size_t frame_bytes, std::size_t ring_bytes, std::string_view advice);

  tpacket2_hdr* slot(std::uint32_t number) const {
    // Slots do not straddle blocks: what is left over at the end of each block is not used.
    const std::size_t offset =
        std::size_t{number / slots_per_block_} * block_bytes + std::size_t{number % slots_per_block_} * slot_bytes_;
    return reinterpret_cast<tpacket2_hdr*>(memory_.data() + offset);
  }
  std::uint32_t slots() const { return slots_; }
  std::size_t bytes() const { return memory_.size(); }

 private:
  // Contiguous for the kernel; larger ones are hard to find on a used machine.
  static constexpr std::uint32_t block_bytes = 128 * 1024;

  std::uint32_t slot_bytes_;
  std::uint32_t slots_per_block_;
  std::uint32_t slots_;
  Mapping memory_;
};

}  // namespace fabricbench

#include "base/packet_ring.hpp"

#include <algorithm>

namespace fabricbench {
namespace {

constexpr std::size_t most_slots = 8192;  // at 64 bytes and 0.4 million frames a second, 20 ms

std::uint32_t slot_bytes_for(std::size_t frame_bytes) {
  // One byte more than the longest legal frame, so that a longer one is seen as such; the kernel puts the network
  // header on a 16-byte boundary, which may take up to 16 bytes more.
  const std::size_t needed = TPACKET2_HDRLEN + 16 + 16 + frame_bytes + 1;
  return static_cast<std::uint32_t>(TPACKET_ALIGN(needed));
}

}  // namespace

PacketRing::PacketRing(const Descriptor& socket, std::size_t frame_bytes, std::size_t ring_bytes,
                       std::string_view advice)
    : slot_bytes_(slot_bytes_for(frame_bytes)), slots_per_block_(block_bytes / slot_bytes_) {
  const std::size_t wanted =
      std::clamp<std::size_t>(ring_bytes / slot_bytes_, std::size_t{2} * slots_per_block_, most_slots);
  const std::uint32_t blocks = static_cast<std::uint32_t>(wanted) / slots_per_block_;
  slots_ = blocks * slots_per_block_;
  set_option(socket, SOL_PACKET, PACKET_VERSION, static_cast<int>(TPACKET_V2), "PACKET_VERSION");
  const tpacket_req request{block_bytes, blocks, slot_bytes_, slots_};
  set_option(socket, SOL_PACKET, PACKET_RX_RING, request, "PACKET_RX_RING");
  memory_ =
      Mapping(std::size_t{block_bytes} * blocks, MAP_SHARED | MAP_POPULATE, socket.get(), 0, "PACKET_RX_RING", advice);
}

}  // namespace fabricbench

#include "switch/ring.hpp"

#include <linux/if_ether.h>
#include <linux/net_tstamp.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "switch/failure.hpp"

namespace fabricbench::emulated_switch {
namespace {

constexpr std::uint32_t kBlockBytes =
    128 * 1024;                             // contiguous for the kernel; larger ones are hard to find on a used machine
constexpr std::uint32_t kMostSlots = 8192;  // at 64 bytes and 0.4 million frames a second, 20 ms

std::uint32_t slot_bytes_for(std::int64_t frame_bytes) {
  // One byte more than the longest legal frame, so that a longer one is seen as such; the kernel puts the network
  // header on a 16-byte boundary, which may take up to 16 bytes more.
  const std::int64_t needed = TPACKET2_HDRLEN + 16 + 16 + frame_bytes + 1;
  return static_cast<std::uint32_t>(TPACKET_ALIGN(needed));
}

}  // namespace

ReceiveRing::ReceiveRing(const std::string& interface, std::int64_t frame_bytes, std::int64_t ring_bytes)
    : slot_bytes_(slot_bytes_for(frame_bytes)), slots_per_block_(kBlockBytes / slot_bytes_) {
  const std::int64_t wanted = std::clamp<std::int64_t>(ring_bytes / slot_bytes_, 2 * slots_per_block_, kMostSlots);
  const std::uint32_t blocks = static_cast<std::uint32_t>(wanted) / slots_per_block_;
  slots_ = blocks * slots_per_block_;
  holders_.resize(slots_);
  socket_.set(SOL_PACKET, PACKET_VERSION, static_cast<int>(TPACKET_V2), "PACKET_VERSION");
  socket_.set(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1, "PACKET_IGNORE_OUTGOING");
  // A socket that asks for time stamps makes the kernel stamp frames when the interface hands them over, not when they
  // reach the ring: the time of queueing for a softirq in between is then made up for, not added.
  socket_.set(SOL_SOCKET, SO_TIMESTAMPNS, 1, "SO_TIMESTAMPNS");
  socket_.set(SOL_PACKET, PACKET_TIMESTAMP, static_cast<int>(SOF_TIMESTAMPING_SOFTWARE), "PACKET_TIMESTAMP");
  tpacket_req request{kBlockBytes, blocks, slot_bytes_, slots_};
  socket_.set(SOL_PACKET, PACKET_RX_RING, request, "a receive ring (PACKET_RX_RING)");
  mapped_bytes_ = std::size_t{kBlockBytes} * blocks;
  void* memory = mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, socket_.fd(), 0);
  if (memory == MAP_FAILED) throw EnvironmentLacks::from_errno("cannot map the receive ring of " + interface);
  memory_ = static_cast<std::uint8_t*>(memory);
  socket_.bind_to(interface, ETH_P_ALL);
}

ReceiveRing::ReceiveRing(ReceiveRing&& other) noexcept
    : socket_(std::move(other.socket_)),
      slot_bytes_(other.slot_bytes_),
      slots_per_block_(other.slots_per_block_),
      slots_(other.slots_),
      next_(other.next_),
      mapped_bytes_(other.mapped_bytes_),
      memory_(std::exchange(other.memory_, nullptr)),
      holders_(std::move(other.holders_)) {}

ReceiveRing::~ReceiveRing() {
  if (memory_ != nullptr) munmap(memory_, mapped_bytes_);
}

tpacket2_hdr* ReceiveRing::header(std::uint32_t slot) const {
  // Slots do not straddle blocks: what is left over at the end of each block is not used.
  const std::size_t offset =
      std::size_t{slot / slots_per_block_} * kBlockBytes + std::size_t{slot % slots_per_block_} * slot_bytes_;
  return reinterpret_cast<tpacket2_hdr*>(memory_ + offset);
}

std::optional<ReceivedFrame> ReceiveRing::take() {
  // A slot that is still held has come round again: the ring is full, and the status word says "user" from the last
  // time.
  if (holders_[next_] != 0) return std::nullopt;
  tpacket2_hdr* const slot = header(next_);
  const std::uint32_t status = __atomic_load_n(&slot->tp_status, __ATOMIC_ACQUIRE);
  if ((status & TP_STATUS_USER) == 0) return std::nullopt;
  holders_[next_] = 1;
  const ReceivedFrame frame{next_, slot->tp_len, std::int64_t{slot->tp_sec} * 1'000'000'000 + slot->tp_nsec,
                            slot->tp_snaplen == slot->tp_len, (status & TP_STATUS_CSUMNOTREADY) == 0};
  next_ = next_ + 1 == slots_ ? 0 : next_ + 1;
  return frame;
}

void ReceiveRing::release(std::uint32_t slot) {
  if (--holders_[slot] == 0) __atomic_store_n(&header(slot)->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
}

const std::uint8_t* ReceiveRing::data(std::uint32_t slot) const {
  const tpacket2_hdr* const start = header(slot);
  return reinterpret_cast<const std::uint8_t*>(start) + start->tp_mac;
}

std::uint64_t ReceiveRing::take_lost_frames() {
  tpacket_stats statistics{};
  socklen_t size = sizeof statistics;
  if (getsockopt(socket_.fd(), SOL_PACKET, PACKET_STATISTICS, &statistics, &size) != 0) return 0;
  return statistics.tp_drops;
}

}  // namespace fabricbench::emulated_switch

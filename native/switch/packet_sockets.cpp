#include "switch/packet_sockets.hpp"

#include <arpa/inet.h>
#include <linux/errqueue.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/net_tstamp.h>
#include <net/if.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/failure.hpp"

namespace fabricbench::emulated_switch {

namespace {

/// Failure where there is no such interface; `protocol` 0 receives nothing, ETH_P_ALL all frames.
void bind_to_interface(const Descriptor& socket, const std::string& interface, int protocol) {
  const unsigned index = if_nametoindex(interface.c_str());
  if (index == 0) {
    throw Failure(FailureCode::unreachable, "there is no interface " + interface + " in this network namespace");
  }
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(static_cast<std::uint16_t>(protocol));
  address.sll_ifindex = static_cast<int>(index);
  if (bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    fail_with_errno("bind(AF_PACKET, " + interface + ")");
  }
}

/// Bound to nothing yet.
Descriptor open_packet_socket() { return open_socket(AF_PACKET, SOCK_RAW, 0, "AF_PACKET"); }

constexpr std::uint32_t kBlockBytes =
    128 * 1024;                             // contiguous for the kernel; larger ones are hard to find on a used machine
constexpr std::uint32_t kMostSlots = 8192;  // at 64 bytes and 0.4 million frames a second, 20 ms

std::uint32_t slot_bytes_for(std::int64_t frame_bytes) {
  // One byte more than the longest legal frame, so that a longer one is seen as such; the kernel puts the network
  // header on a 16-byte boundary, which may take up to 16 bytes more.
  const std::int64_t needed = TPACKET2_HDRLEN + 16 + 16 + frame_bytes + 1;
  return static_cast<std::uint32_t>(TPACKET_ALIGN(needed));
}

/// Frames count against the sender until the receiving node's stack has taken them up: where it runs behind (receive
/// packet steering on a busy CPU), the default 208 KiB are full after 90 frames. Ordinary users get what the system
/// allows them.
constexpr int kSendBufferBytes = 8 << 20;

Sending outcome_of(ssize_t sent_bytes) {
  if (sent_bytes >= 0) return Sending::done;
  return errno == EAGAIN ? Sending::later : Sending::refused;
}

}  // namespace

ReceiveRing::ReceiveRing(const std::string& interface, std::int64_t frame_bytes, std::int64_t ring_bytes)
    : socket_(open_packet_socket()),
      slot_bytes_(slot_bytes_for(frame_bytes)),
      slots_per_block_(kBlockBytes / slot_bytes_) {
  const std::int64_t wanted = std::clamp<std::int64_t>(ring_bytes / slot_bytes_, 2 * slots_per_block_, kMostSlots);
  const std::uint32_t blocks = static_cast<std::uint32_t>(wanted) / slots_per_block_;
  slots_ = blocks * slots_per_block_;
  holders_.resize(slots_);
  set_option(socket_, SOL_PACKET, PACKET_VERSION, static_cast<int>(TPACKET_V2), "PACKET_VERSION");
  set_option(socket_, SOL_PACKET, PACKET_IGNORE_OUTGOING, 1, "PACKET_IGNORE_OUTGOING");
  // A socket that asks for time stamps makes the kernel stamp frames when the interface hands them over, not when they
  // reach the ring: the time of queueing for a softirq in between is then made up for, not added.
  set_option(socket_, SOL_SOCKET, SO_TIMESTAMPNS, 1, "SO_TIMESTAMPNS");
  set_option(socket_, SOL_PACKET, PACKET_TIMESTAMP, static_cast<int>(SOF_TIMESTAMPING_SOFTWARE), "PACKET_TIMESTAMP");
  tpacket_req request{kBlockBytes, blocks, slot_bytes_, slots_};
  set_option(socket_, SOL_PACKET, PACKET_RX_RING, request, "a receive ring (PACKET_RX_RING)");
  mapped_bytes_ = std::size_t{kBlockBytes} * blocks;
  void* memory = mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, socket_.get(), 0);
  if (memory == MAP_FAILED) {
    fail_with_errno("mmap(receive ring of " + interface + ")",
                    "the kernel has too little memory to spare: use fewer nodes");
  }
  memory_ = static_cast<std::uint8_t*>(memory);
  bind_to_interface(socket_, interface, ETH_P_ALL);
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
  if (getsockopt(socket_.get(), SOL_PACKET, PACKET_STATISTICS, &statistics, &size) != 0) return 0;
  return statistics.tp_drops;
}

Sender::Sender(const std::string& interface) : socket_(open_packet_socket()) {
  set_option(socket_, SOL_PACKET, PACKET_QDISC_BYPASS, 1, "PACKET_QDISC_BYPASS");
  if (setsockopt(socket_.get(), SOL_SOCKET, SO_SNDBUFFORCE, &kSendBufferBytes, sizeof kSendBufferBytes) != 0) {
    set_option(socket_, SOL_SOCKET, SO_SNDBUF, kSendBufferBytes, "SO_SNDBUF");
  }
  // Reporting only: which frames are stamped is said with each, so that the others do not pay for it.
  const unsigned reporting = SOF_TIMESTAMPING_SOFTWARE | SOF_TIMESTAMPING_OPT_TSONLY;
  set_option(socket_, SOL_SOCKET, SO_TIMESTAMPING, reporting, "SO_TIMESTAMPING");
  bind_to_interface(socket_, interface, 0);
}

Sending Sender::send(std::span<const std::uint8_t> frame) {
  return outcome_of(::send(socket_.get(), frame.data(), frame.size(), MSG_DONTWAIT));
}

Sending Sender::send_stamped(std::span<const std::uint8_t> frame) {
  // sendmsg() only reads what iov_base points to, its type cannot say so.
  iovec part{const_cast<std::uint8_t*>(frame.data()), frame.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(std::uint32_t))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SO_TIMESTAMPING;
  header->cmsg_len = CMSG_LEN(sizeof(std::uint32_t));
  const std::uint32_t stamp = SOF_TIMESTAMPING_TX_SOFTWARE;
  std::memcpy(CMSG_DATA(header), &stamp, sizeof stamp);
  return outcome_of(sendmsg(socket_.get(), &message, MSG_DONTWAIT));
}

std::optional<std::int64_t> Sender::take_stamp_ns() {
  alignas(cmsghdr) std::array<char, 256> control{};
  msghdr message{};
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  if (recvmsg(socket_.get(), &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) return std::nullopt;
  return software_stamp_ns(message);
}

}  // namespace fabricbench::emulated_switch

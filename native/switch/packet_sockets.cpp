#include "switch/packet_sockets.hpp"

#include <arpa/inet.h>
#include <linux/errqueue.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/net_tstamp.h>
#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

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

/// Frames count against the sender until the receiving node's stack has taken them up: where it runs behind (receive
/// packet steering on a busy CPU), the default 208 KiB are full after 90 frames. Ordinary users get what the system
/// allows them.
constexpr int kSendBufferBytes = 8 << 20;

Sending outcome_of(ssize_t sent_bytes) {
  if (sent_bytes >= 0) return Sending::done;
  return errno == EAGAIN ? Sending::later : Sending::refused;
}

/// A socket that asks for time stamps makes the kernel stamp frames when the interface hands them over, not when they
/// reach the ring: the time of queueing for a softirq in between is then made up for, not added.
Descriptor open_stamping_socket() {
  Descriptor socket = open_packet_socket();
  set_option(socket, SOL_PACKET, PACKET_IGNORE_OUTGOING, 1, "PACKET_IGNORE_OUTGOING");
  set_option(socket, SOL_SOCKET, SO_TIMESTAMPNS, 1, "SO_TIMESTAMPNS");
  set_option(socket, SOL_PACKET, PACKET_TIMESTAMP, static_cast<int>(SOF_TIMESTAMPING_SOFTWARE), "PACKET_TIMESTAMP");
  return socket;
}

}  // namespace

ReceiveRing::ReceiveRing(const std::string& interface, std::int64_t frame_bytes, std::int64_t ring_bytes)
    : socket_(open_stamping_socket()),
      ring_(socket_, static_cast<std::size_t>(frame_bytes), static_cast<std::size_t>(ring_bytes),
            "the kernel has too little memory to spare: use fewer nodes") {
  holders_.resize(ring_.slots());
  bind_to_interface(socket_, interface, ETH_P_ALL);
}

std::optional<ReceivedFrame> ReceiveRing::take() {
  // A slot that is still held has come round again: the ring is full, and the status word says "user" from the last
  // time.
  if (holders_[next_] != 0) return std::nullopt;
  tpacket2_hdr* const slot = ring_.slot(next_);
  const std::uint32_t status = __atomic_load_n(&slot->tp_status, __ATOMIC_ACQUIRE);
  if ((status & TP_STATUS_USER) == 0) return std::nullopt;
  holders_[next_] = 1;
  const ReceivedFrame frame{next_, slot->tp_len, std::int64_t{slot->tp_sec} * 1'000'000'000 + slot->tp_nsec,
                            slot->tp_snaplen == slot->tp_len, (status & TP_STATUS_CSUMNOTREADY) == 0};
  next_ = next_ + 1 == ring_.slots() ? 0 : next_ + 1;
  return frame;
}

void ReceiveRing::release(std::uint32_t slot) {
  if (--holders_[slot] == 0) __atomic_store_n(&ring_.slot(slot)->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
}

const std::uint8_t* ReceiveRing::data(std::uint32_t slot) const {
  const tpacket2_hdr* const start = ring_.slot(slot);
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

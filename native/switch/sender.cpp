#include "switch/sender.hpp"

#include <linux/errqueue.h>
#include <linux/if_packet.h>
#include <linux/net_tstamp.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace fabricbench::emulated_switch {
namespace {

/// Frames count against the sender until the receiving node's stack has taken them up: where it runs behind (receive
/// packet steering on a busy CPU), the default 208 KiB are full after 90 frames. Ordinary users get what the system
/// allows them.
constexpr int kSendBufferBytes = 8 << 20;

Sending outcome_of(ssize_t sent_bytes) {
  if (sent_bytes >= 0) return Sending::done;
  return errno == EAGAIN ? Sending::later : Sending::refused;
}

}  // namespace

Sender::Sender(const std::string& interface) {
  socket_.set(SOL_PACKET, PACKET_QDISC_BYPASS, 1, "PACKET_QDISC_BYPASS");
  if (setsockopt(socket_.fd(), SOL_SOCKET, SO_SNDBUFFORCE, &kSendBufferBytes, sizeof kSendBufferBytes) != 0) {
    socket_.set(SOL_SOCKET, SO_SNDBUF, kSendBufferBytes, "SO_SNDBUF");
  }
  // Reporting only: which frames are stamped is said with each, so that the others do not pay for it.
  const unsigned reporting = SOF_TIMESTAMPING_SOFTWARE | SOF_TIMESTAMPING_OPT_TSONLY;
  socket_.set(SOL_SOCKET, SO_TIMESTAMPING, reporting, "SO_TIMESTAMPING");
  socket_.bind_to(interface, 0);
}

Sending Sender::send(std::span<const std::uint8_t> frame) {
  return outcome_of(::send(socket_.fd(), frame.data(), frame.size(), MSG_DONTWAIT));
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
  return outcome_of(sendmsg(socket_.fd(), &message, MSG_DONTWAIT));
}

std::optional<std::int64_t> Sender::take_stamp_ns() {
  alignas(cmsghdr) std::array<char, 256> control{};
  msghdr message{};
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  if (recvmsg(socket_.fd(), &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) return std::nullopt;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_TIMESTAMPING) continue;
    scm_timestamping stamps{};
    std::memcpy(&stamps, CMSG_DATA(header), sizeof stamps);
    return std::int64_t{stamps.ts[0].tv_sec} * 1'000'000'000 + stamps.ts[0].tv_nsec;
  }
  return std::nullopt;
}

}  // namespace fabricbench::emulated_switch

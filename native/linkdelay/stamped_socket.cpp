#include "linkdelay/stamped_socket.hpp"

#include <fcntl.h>
#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <vector>

#include "base/failure.hpp"

namespace fabricbench::linkdelay {
namespace {

/// The number of the datagram that a stamp on the error queue is of.
std::optional<std::uint32_t> number_of(msghdr& message) {
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_IP || header->cmsg_type != IP_RECVERR) continue;
    sock_extended_err error{};
    std::memcpy(&error, CMSG_DATA(header), sizeof error);
    if (error.ee_origin == SO_EE_ORIGIN_TIMESTAMPING && error.ee_info == SCM_TSTAMP_SND) return error.ee_data;
  }
  return std::nullopt;
}

/// What is left of a timeout, at least 0.
int left_ms(std::chrono::steady_clock::time_point until) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
  return static_cast<int>(std::max<std::int64_t>(0, left.count()));
}

}  // namespace

void enter(const std::string& network_namespace) {
  const bool is_pid = network_namespace.find_first_not_of("0123456789") == std::string::npos;
  const std::string path = is_pid ? "/proc/" + network_namespace + "/ns/net" : network_namespace;
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) fail_with_errno("open(" + path + ")", "name a PID or the path of a network namespace");
  if (setns(file.get(), CLONE_NEWNET) != 0) fail_with_errno("setns(" + path + ")", "be root in its user namespace");
}

StampedSocket::StampedSocket(const std::string& address) : socket_(open_socket(AF_INET, SOCK_DGRAM, 0, "SOCK_DGRAM")) {
  const unsigned flags = SOF_TIMESTAMPING_TX_SOFTWARE | SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE |
                         SOF_TIMESTAMPING_OPT_TSONLY | SOF_TIMESTAMPING_OPT_ID;
  set_option(socket_, SOL_SOCKET, SO_TIMESTAMPING, flags, "SO_TIMESTAMPING");
  bind_to(socket_, SocketAddress::parse(address + ":0"));
}

void StampedSocket::connect_to(const StampedSocket& other) {
  fabricbench::connect_to(socket_, SocketAddress::bound_to(other.socket_));
}

std::uint32_t StampedSocket::send(std::span<const std::uint8_t> datagram) {
  if (::send(socket_.get(), datagram.data(), datagram.size(), 0) < 0) fail_with_errno("send(udp)");
  return sent_++;
}

std::optional<std::int64_t> StampedSocket::take_sent_ns(std::uint32_t number, int timeout_ms) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  while (true) {
    pollfd polled{socket_.get(), 0, 0};  // the error queue shows as POLLERR, which is always watched
    if (poll(&polled, 1, left_ms(until)) <= 0) return std::nullopt;
    alignas(cmsghdr) std::array<char, 512> control{};
    msghdr message{};
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    if (recvmsg(socket_.get(), &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) return std::nullopt;
    if (number_of(message) == number) return software_stamp_ns(message);
  }
}

std::optional<StampedSocket::Arrival> StampedSocket::take_arrival(int timeout_ms) {
  pollfd polled{socket_.get(), POLLIN, 0};
  if (poll(&polled, 1, timeout_ms) <= 0) return std::nullopt;
  std::uint64_t sequence = 0;
  iovec part{&sequence, sizeof sequence};  // the rest of the datagram is cut off
  alignas(cmsghdr) std::array<char, 512> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  if (recvmsg(socket_.get(), &message, MSG_DONTWAIT) < 0) fail_with_errno("recvmsg(udp)");
  return Arrival{software_stamp_ns(message), sequence};
}

}  // namespace fabricbench::linkdelay

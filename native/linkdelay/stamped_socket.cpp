#include "linkdelay/stamped_socket.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <system_error>
#include <vector>

namespace fabricbench::linkdelay {
namespace {

void check(bool is_done, const std::string& what) {
  if (!is_done) throw std::system_error(errno, std::generic_category(), what);
}

/// The software time stamp among a message's control messages.
std::optional<std::int64_t> stamp_of(msghdr& message) {
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_TIMESTAMPING) continue;
    scm_timestamping stamps{};
    std::memcpy(&stamps, CMSG_DATA(header), sizeof stamps);
    return std::int64_t{stamps.ts[0].tv_sec} * 1'000'000'000 + stamps.ts[0].tv_nsec;
  }
  return std::nullopt;
}

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
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  check(fd >= 0, "cannot open the network namespace " + path);
  const bool has_entered = setns(fd, CLONE_NEWNET) == 0;
  const int error = errno;
  close(fd);
  errno = error;
  check(has_entered, "cannot enter the network namespace " + path);
}

StampedSocket::StampedSocket(const std::string& address) : fd_(-1) {
  sockaddr_in bound{};
  bound.sin_family = AF_INET;
  if (inet_pton(AF_INET, address.c_str(), &bound.sin_addr) != 1) {
    throw std::invalid_argument("not an IPv4 address: " + address);
  }
  fd_ = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  check(fd_ >= 0, "cannot open a UDP socket");
  const unsigned flags = SOF_TIMESTAMPING_TX_SOFTWARE | SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE |
                         SOF_TIMESTAMPING_OPT_TSONLY | SOF_TIMESTAMPING_OPT_ID;
  check(setsockopt(fd_, SOL_SOCKET, SO_TIMESTAMPING, &flags, sizeof flags) == 0, "cannot ask for time stamps");
  check(bind(fd_, reinterpret_cast<const sockaddr*>(&bound), sizeof bound) == 0, "cannot bind to " + address);
}

StampedSocket::~StampedSocket() {
  if (fd_ >= 0) close(fd_);
}

void StampedSocket::connect_to(const StampedSocket& other) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  check(getsockname(other.fd_, reinterpret_cast<sockaddr*>(&address), &size) == 0, "cannot read a socket's address");
  check(connect(fd_, reinterpret_cast<const sockaddr*>(&address), size) == 0, "cannot connect");
}

std::uint32_t StampedSocket::send(std::span<const std::uint8_t> datagram) {
  check(::send(fd_, datagram.data(), datagram.size(), 0) >= 0, "cannot send");
  return sent_++;
}

std::optional<std::int64_t> StampedSocket::take_sent_ns(std::uint32_t number, int timeout_ms) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  while (true) {
    pollfd polled{fd_, 0, 0};  // the error queue shows as POLLERR, which is always watched
    if (poll(&polled, 1, left_ms(until)) <= 0) return std::nullopt;
    alignas(cmsghdr) std::array<char, 512> control{};
    msghdr message{};
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    if (recvmsg(fd_, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) return std::nullopt;
    if (number_of(message) == number) return stamp_of(message);
  }
}

std::optional<StampedSocket::Arrival> StampedSocket::take_arrival(int timeout_ms) {
  pollfd polled{fd_, POLLIN, 0};
  if (poll(&polled, 1, timeout_ms) <= 0) return std::nullopt;
  std::uint64_t sequence = 0;
  iovec part{&sequence, sizeof sequence};  // the rest of the datagram is cut off
  alignas(cmsghdr) std::array<char, 512> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  check(recvmsg(fd_, &message, MSG_DONTWAIT) >= 0, "cannot receive");
  return Arrival{stamp_of(message), sequence};
}

}  // namespace fabricbench::linkdelay

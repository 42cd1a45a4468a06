#include "base/socket.hpp"

#include <arpa/inet.h>
#include <linux/errqueue.h>
#include <linux/filter.h>
#include <sys/time.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <span>
#include <vector>

#include "base/failure.hpp"
#include "base/interface.hpp"

namespace fabricbench {
namespace {

// A thousand frames of 1500 bytes with the kernel's bookkeeping.
constexpr int receive_buffer_bytes = 8 << 20;

timeval to_timeval(double seconds) {
  const double whole = std::floor(seconds);
  return {static_cast<time_t>(whole), static_cast<suseconds_t>((seconds - whole) * 1e6)};
}

void set_time(const Descriptor& socket, int option, timeval time, std::string_view call) {
  if (setsockopt(socket.get(), SOL_SOCKET, option, &time, sizeof time) != 0) fail_with_errno(call);
}

std::string shown(const sockaddr_in& address) {
  return endpoint_text(ntohl(address.sin_addr.s_addr), ntohs(address.sin_port));
}

int granted_bytes(int socket, int option) {
  int bytes = 0;
  socklen_t size = sizeof bytes;
  if (getsockopt(socket, SOL_SOCKET, option, &bytes, &size) != 0) fail_with_errno("getsockopt");
  return bytes;
}

constexpr std::uint32_t whole_packet = 0xffffffff;

void attach(const Descriptor& socket, std::span<sock_filter> program) {
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  if (setsockopt(socket.get(), SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter) != 0) {
    fail_with_errno("setsockopt(SO_ATTACH_FILTER)");
  }
}

}  // namespace

Descriptor open_socket(int domain, int type, int protocol, std::string_view name) {
  Descriptor socket(::socket(domain, type | SOCK_CLOEXEC, protocol));
  if (socket.get() < 0) fail_with_errno("socket(" + std::string(name) + ")");
  return socket;
}

void set_option_bytes(const Descriptor& socket, int level, int option, const void* value, std::size_t size,
                      std::string_view name) {
  if (setsockopt(socket.get(), level, option, value, static_cast<socklen_t>(size)) != 0) {
    fail_with_errno("setsockopt(" + std::string(name) + ")");
  }
}

void set_send_bound(const Descriptor& socket, double seconds) {
  set_time(socket, SO_SNDTIMEO, to_timeval(seconds), "setsockopt(SO_SNDTIMEO)");
}

void remove_bounds(const Descriptor& socket) {
  constexpr timeval without_bound{};
  set_time(socket, SO_RCVTIMEO, without_bound, "setsockopt(SO_RCVTIMEO)");
  set_time(socket, SO_SNDTIMEO, without_bound, "setsockopt(SO_SNDTIMEO)");
}

void enlarge_receive_buffer(const Descriptor& socket) {
  const int bytes = receive_buffer_bytes;
  if (setsockopt(socket.get(), SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes) == 0) return;
  setsockopt(socket.get(), SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);  // cut to net.core.rmem_max
}

GrantedBuffers granted_buffers(int receiving_socket, int sending_socket) {
  return {granted_bytes(receiving_socket, SO_RCVBUF), granted_bytes(sending_socket, SO_SNDBUF)};
}

std::string endpoint_text(std::uint32_t address, std::uint16_t port) {
  return address_text(address) + ":" + std::to_string(port);
}

sockaddr_in parse_endpoint(std::string_view text) {
  const std::size_t colon = text.find(':');
  sockaddr_in result{};
  result.sin_family = AF_INET;
  std::uint16_t port = 0;
  bool is_good = colon != std::string_view::npos;
  if (is_good) {
    const std::string_view digits = text.substr(colon + 1);
    is_good = inet_pton(AF_INET, std::string(text.substr(0, colon)).c_str(), &result.sin_addr) == 1 &&
              std::from_chars(digits.data(), digits.data() + digits.size(), port).ec == std::errc();
  }
  if (!is_good)
    throw Failure(FailureCode::error, "not an IPv4 address and port, address:port: '" + std::string(text) + "'");
  result.sin_port = htons(port);
  return result;
}

sockaddr_in socket_address(std::uint32_t address, std::uint16_t port) {
  sockaddr_in result{};
  result.sin_family = AF_INET;
  result.sin_port = htons(port);
  result.sin_addr.s_addr = htonl(address);
  return result;
}

void bind_to(const Descriptor& socket, const sockaddr_in& address) {
  if (bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    fail_with_errno("bind(" + shown(address) + ")");
  }
}

void connect_to(const Descriptor& socket, const sockaddr_in& address) {
  if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    fail_with_errno("connect(" + shown(address) + ")");
  }
}

sockaddr_in bound_address(const Descriptor& socket) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  if (getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) fail_with_errno("getsockname");
  return address;
}

std::uint16_t bound_port(const Descriptor& socket) { return ntohs(bound_address(socket).sin_port); }

void drain(const Descriptor& socket) {
  std::array<std::byte, 64> scrap{};
  while (recv(socket.get(), scrap.data(), scrap.size(), MSG_DONTWAIT | MSG_TRUNC) >= 0) {
  }
}

void admit_only_token(const Descriptor& socket, std::uint32_t token, std::uint32_t offset) {
  // The token lies in the payload as this machine stores it; the filter reads big-endian.
  std::vector<sock_filter> program{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htonl(token), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, whole_packet),
      BPF_STMT(BPF_RET | BPF_K, 0),
  };
  attach(socket, program);
  drain(socket);
}

void admit_nothing(const Descriptor& socket) {
  std::vector<sock_filter> program{BPF_STMT(BPF_RET | BPF_K, 0)};
  attach(socket, program);
  drain(socket);
}

std::optional<std::int64_t> software_stamp_ns(msghdr& message) {
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_TIMESTAMPING) continue;
    scm_timestamping stamps{};
    std::memcpy(&stamps, CMSG_DATA(header), sizeof stamps);
    return std::int64_t{stamps.ts[0].tv_sec} * 1'000'000'000 + stamps.ts[0].tv_nsec;
  }
  return std::nullopt;
}

}  // namespace fabricbench

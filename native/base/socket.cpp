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

SocketAddress::SocketAddress(const sockaddr_in& address) : size_(sizeof address) {
  std::memcpy(&storage_, &address, sizeof address);
}

SocketAddress::SocketAddress(const sockaddr_in6& address) : size_(sizeof address) {
  std::memcpy(&storage_, &address, sizeof address);
}

SocketAddress SocketAddress::parse(std::string_view text, std::uint32_t scope) {
  const std::size_t colon = text.rfind(':');
  const std::string_view digits = colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1);
  std::string host(text.substr(0, colon));
  std::uint16_t port = 0;
  if (std::from_chars(digits.data(), digits.data() + digits.size(), port).ec == std::errc()) {
    if (in_addr address{}; inet_pton(AF_INET, host.c_str(), &address) == 1) {
      return SocketAddress(socket_address(ntohl(address.s_addr), port));
    }
    if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
    sockaddr_in6 found{};
    if (inet_pton(AF_INET6, host.c_str(), &found.sin6_addr) == 1) {
      found.sin6_family = AF_INET6;
      found.sin6_port = htons(port);
      if (IN6_IS_ADDR_LINKLOCAL(&found.sin6_addr)) found.sin6_scope_id = scope;
      return SocketAddress(found);
    }
  }
  throw Failure(FailureCode::error,
                "not an address and port, address:port or [address]:port: '" + std::string(text) + "'");
}

SocketAddress SocketAddress::bound_to(const Descriptor& socket) {
  SocketAddress found;
  found.size_ = sizeof found.storage_;
  if (getsockname(socket.get(), reinterpret_cast<sockaddr*>(&found.storage_), &found.size_) != 0) {
    fail_with_errno("getsockname");
  }
  return found;
}

std::optional<SocketAddress> SocketAddress::peer_of(const Descriptor& socket) {
  SocketAddress found;
  found.size_ = sizeof found.storage_;
  if (getpeername(socket.get(), reinterpret_cast<sockaddr*>(&found.storage_), &found.size_) != 0) return std::nullopt;
  return found;
}

namespace {

// Of both families the port comes first and lies at the same place.
static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));

sockaddr_in6 as_version_6(const sockaddr_storage& storage) {
  sockaddr_in6 address{};
  std::memcpy(&address, &storage, sizeof address);
  return address;
}

sockaddr_in as_version_4(const sockaddr_storage& storage) {
  sockaddr_in address{};
  std::memcpy(&address, &storage, sizeof address);
  return address;
}

}  // namespace

std::uint16_t SocketAddress::port() const { return ntohs(as_version_4(storage_).sin_port); }

bool SocketAddress::has_host_of(const SocketAddress& other) const {
  if (family() != other.family()) return false;
  if (family() == AF_INET)
    return as_version_4(storage_).sin_addr.s_addr == as_version_4(other.storage_).sin_addr.s_addr;
  const in6_addr mine = as_version_6(storage_).sin6_addr;
  const in6_addr others = as_version_6(other.storage_).sin6_addr;
  return std::memcmp(&mine, &others, sizeof mine) == 0;
}

std::string SocketAddress::host_text() const {
  if (family() != AF_INET6) return address_text(ntohl(as_version_4(storage_).sin_addr.s_addr));
  std::array<char, INET6_ADDRSTRLEN> text{};
  const in6_addr address = as_version_6(storage_).sin6_addr;
  inet_ntop(AF_INET6, &address, text.data(), text.size());
  std::string host(1, '[');
  host += text.data();
  host += ']';
  return host;
}

std::string SocketAddress::text() const { return host_text() + ":" + std::to_string(port()); }

sockaddr_in socket_address(std::uint32_t address, std::uint16_t port) {
  sockaddr_in result{};
  result.sin_family = AF_INET;
  result.sin_port = htons(port);
  result.sin_addr.s_addr = htonl(address);
  return result;
}

void bind_to(const Descriptor& socket, const SocketAddress& address) {
  if (bind(socket.get(), address.get(), address.size()) != 0) fail_with_errno("bind(" + address.text() + ")");
}

void connect_to(const Descriptor& socket, const SocketAddress& address) {
  if (connect(socket.get(), address.get(), address.size()) != 0) fail_with_errno("connect(" + address.text() + ")");
}

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

// A file descriptor that closes itself, and the socket calls that are made before anything is timed.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace fabricbench {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }

  int get() const { return number_; }
  /// Close it now: 0, or the errno. What was written may not lie on the disk before: a file system over a network tells
  /// of one that is full only here.
  int close_now() { return number_ < 0 || close(std::exchange(number_, -1)) == 0 ? 0 : errno; }

 private:
  int number_ = -1;
};

/// Open a socket or throw the Failure that names it, "socket(AF_PACKET)" say.
Descriptor open_socket(int domain, int type, int protocol, std::string_view name);

void set_option_bytes(const Descriptor& socket, int level, int option, const void* value, std::size_t size,
                      std::string_view name);
template <class Value>
void set_option(const Descriptor& socket, int level, int option, const Value& value, std::string_view name) {
  set_option_bytes(socket, level, option, &value, sizeof value, name);
}
/// Bound how long a blocking send or connect sleeps.
void set_send_bound(const Descriptor& socket, double seconds);
/// Let both sleep until there is something; a Watchdog bounds them from here on.
void remove_bounds(const Descriptor& socket);
/// Ask for a receive buffer that holds a burst while the receiver is not running; the system may grant less.
void enlarge_receive_buffer(const Descriptor& socket);

/// SO_RCVBUF of the socket that receives and SO_SNDBUF of the one that sends, in bytes with the kernel's bookkeeping:
/// what was asked for is not always what is there, and TCP changes its own as it goes.
struct GrantedBuffers {
  int receive_bytes = 0;
  int send_bytes = 0;
};
GrantedBuffers granted_buffers(int receiving_socket, int sending_socket);

/// An IPv4 or IPv6 address with a port.
class SocketAddress {
 public:
  SocketAddress() = default;
  explicit SocketAddress(const sockaddr_in& address);
  explicit SocketAddress(const sockaddr_in6& address);
  /// Read what text() makes; anything else is a Failure. `scope` is the index of the interface that an address is of
  /// which every link has (fe80::).
  static SocketAddress parse(std::string_view text, std::uint32_t scope = 0);
  static SocketAddress bound_to(const Descriptor& socket);
  /// Of a connection's other end; nothing where it has gone.
  static std::optional<SocketAddress> peer_of(const Descriptor& socket);

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t size() const { return size_; }
  int family() const { return storage_.ss_family; }
  std::uint16_t port() const;
  /// Whether it is of the same host, whatever the ports are.
  bool has_host_of(const SocketAddress& other) const;
  /// For the exchange over the control plane: `10.98.1.2:40123`, `[fd00::2]:40123`.
  std::string text() const;
  std::string host_text() const;

 private:
  sockaddr_storage storage_{};
  socklen_t size_ = 0;
};

/// An IPv4 address in host byte order and a port.
sockaddr_in socket_address(std::uint32_t address, std::uint16_t port);
void bind_to(const Descriptor& socket, const SocketAddress& address);
void connect_to(const Descriptor& socket, const SocketAddress& address);

/// Let go of everything that has come so far.
void drain(const Descriptor& socket);

/// Packet filters (classic BPF), by which the kernel drops foreign packets before they are queued. Only packets that
/// have the token at `offset` come through, which counts from where the socket's user sees the packet begin; or none,
/// on sockets that only send. What came before is dropped.
void admit_only_token(const Descriptor& socket, std::uint32_t token, std::uint32_t offset = 0);
void admit_nothing(const Descriptor& socket);

/// The software time stamp (SO_TIMESTAMPING, CLOCK_REALTIME) among a message's control messages.
std::optional<std::int64_t> software_stamp_ns(msghdr& message);

}  // namespace fabricbench

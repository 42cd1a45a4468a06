// Layer tcp: a connection between the two addresses of the fabric, small messages sent at once (TCP_NODELAY). The first
// end connects; the other accepts only the expected peer with the token of the launch.
#pragma once

#include <sys/socket.h>

#include <algorithm>
#include <limits>

#include "base/socket.hpp"
#include "transport/device.hpp"
#include "transport/waiting.hpp"

namespace fabricbench {

/// The part of a connection's life that is not timed.
class TcpConnection {
 public:
  TcpConnection(const Attachment& attachment, const Site& site);
  /// Where the accepting end listens, `10.98.1.2:40123`.
  std::string address() const;
  void meet(std::string_view peer);

  const Descriptor& socket() const { return socket_; }
  void abandon();

 private:
  void connect_and_prove(const sockaddr_in& peer);
  void accept_and_check(std::uint32_t peer_address);
  bool is_proven(const Descriptor& candidate) const;

  Site site_;
  std::uint32_t own_address_;
  Descriptor listener_;
  Descriptor socket_;
};

template <Receive mode>
class Tcp : public PlainMemory {
 public:
  static constexpr Traits traits{
      .is_reliable = true, .is_ordered = true, .framing = Framing::stream, .smallest_message = 1};

  Tcp(const Attachment& attachment, const Site& site) : connection_(attachment, site) {}
  std::size_t largest_message() const { return std::numeric_limits<std::size_t>::max(); }
  std::string address() const { return connection_.address(); }
  void meet(std::string_view peer) {
    connection_.meet(peer);
    socket_ = connection_.socket().get();
  }
  void set_bound(double) {}  // the layer itself sends again what is lost; only a dead peer is given up

  void send(std::span<const std::byte> message) {
    std::size_t done = 0;
    do {
      done += send_some("send(tcp)",
                        [&] { return ::send(socket_, message.data() + done, message.size() - done, MSG_NOSIGNAL); });
    } while (done < message.size());
  }

  int descriptor() const { return socket_; }
  void abandon() { connection_.abandon(); }
  int sending_descriptor() const { return socket_; }
  bool has_full_interface() const { return false; }  // the layer itself waits for the interface
  GrantedBuffers granted_buffers() const { return fabricbench::granted_buffers(socket_, socket_); }

  std::size_t try_send(std::span<const std::byte> message) {
    const ssize_t size = ::send(socket_, message.data(), message.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (size >= 0) [[likely]]
      return static_cast<std::size_t>(size);
    if (!is_empty_or_full(errno) && errno != EINTR) fail_with_errno("send(tcp)");
    return 0;
  }

  std::size_t try_receive(std::span<std::byte> message) {
    const ssize_t size = ::recv(socket_, message.data(), message.size(), MSG_DONTWAIT);
    if (size > 0) [[likely]]
      return static_cast<std::size_t>(size);
    if (size == 0) throw Failure(FailureCode::unreachable, "the peer closed the connection: see what it reports");
    if (!is_empty_or_full(errno) && errno != EINTR) fail_with_errno("recv(tcp)");
    return 0;
  }

  bool receive(std::span<std::byte> message) {
    std::size_t done = 0;
    do {
      const ssize_t size = wait_for<mode>(seconds_to_ns(reliable_bound_seconds), "recv(tcp)", [&](int flags) {
        return ::recv(socket_, message.data() + done, message.size() - done, flags | MSG_WAITALL);
      });
      if (size <= 0) [[unlikely]] {
        if (size < 0) throw Failure(FailureCode::timeout, "nothing came for 10 s: is the link up and the peer alive?");
        throw Failure(FailureCode::unreachable, "the peer closed the connection: see what it reports");
      }
      done += static_cast<std::size_t>(size);
    } while (done < message.size());
    return true;
  }

 private:
  TcpConnection connection_;
  int socket_ = -1;
};

static_assert(ByteStream<Tcp<Receive::blocking>> && ByteStream<Tcp<Receive::polling>>);

/// Through stream sockets.
struct TcpDevice : SocketDevice<Tcp> {
  static constexpr Layer layer = Layer::tcp;
  static constexpr std::string_view door = "socket";
  static constexpr bool has_flows = true;
  using SocketDevice::SocketDevice;
};

static_assert(Device<TcpDevice>);

}  // namespace fabricbench

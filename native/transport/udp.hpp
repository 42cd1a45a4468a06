// Layer udp: a datagram to an address at each send, as on the layer ip below it, so that the two differ by the layer
// and nothing else: a connected socket would let the kernel keep the route, which raw IP sockets look up for each
// packet. What strangers send does not carry the launch's token.
#pragma once

#include <sys/socket.h>

#include "base/socket.hpp"
#include "transport/device.hpp"
#include "transport/transport.hpp"
#include "transport/waiting.hpp"

namespace fabricbench {

/// The part of a UDP path's life that is not timed.
class UdpSocket {
 public:
  explicit UdpSocket(const Attachment& attachment)
      : own_address_(needed_address(attachment)), socket_(open_socket(AF_INET, SOCK_DGRAM, 0, "SOCK_DGRAM")) {
    bind_to(socket_, socket_address(own_address_, 0));
    enlarge_receive_buffer(socket_);
    // Makes send() tell when the interface's queue was full (ENOBUFS); else the kernel would drop the message and say
    // nothing.
    set_option(socket_, IPPROTO_IP, IP_RECVERR, 1, "IP_RECVERR");
  }
  std::string address() const { return endpoint_text(own_address_, bound_port(socket_)); }
  void meet(std::string_view peer) {
    peer_ = parse_endpoint(peer);
    drain(socket_);  // what strangers sent so far
  }
  const Descriptor& socket() const { return socket_; }
  const sockaddr_in& peer() const { return peer_; }

 private:
  std::uint32_t own_address_;
  sockaddr_in peer_{};
  Descriptor socket_;
};

template <Receive mode>
class Udp {
 public:
  static constexpr Traits traits = datagram_traits;

  Udp(const Attachment& attachment, const Site&) : ends_(attachment), socket_(ends_.socket().get()) {}
  std::size_t largest_message() const { return 65535 - 20 - 8; }
  std::string address() const { return ends_.address(); }
  void meet(std::string_view peer) {
    ends_.meet(peer);
    peer_ = ends_.peer();
  }
  void set_bound(double seconds) { bound_ns_ = seconds_to_ns(seconds); }

  void send(std::span<const std::byte> message) {
    send_some("sendto(udp)", [&] {
      return ::sendto(socket_, message.data(), message.size(), 0, reinterpret_cast<const sockaddr*>(&peer_),
                      sizeof peer_);
    });
  }

  int descriptor() const { return socket_; }
  int sending_descriptor() const { return socket_; }
  bool has_full_interface() const { return is_full_; }
  GrantedBuffers granted_buffers() const { return fabricbench::granted_buffers(socket_, socket_); }

  std::size_t try_send(std::span<const std::byte> message) {
    return try_send_datagram("sendto(udp)", is_full_, [&] {
      return ::sendto(socket_, message.data(), message.size(), MSG_DONTWAIT, reinterpret_cast<const sockaddr*>(&peer_),
                      sizeof peer_);
    });
  }

  std::size_t try_receive(std::span<std::byte> message) {
    return try_receive_datagram("recv(udp)", sizeof(DatagramHeader),
                                [&](int flags) { return ::recv(socket_, message.data(), message.size(), flags); });
  }

  bool receive(std::span<std::byte> message) {
    return receive_datagram(traits.smallest_message, [&] {
      return wait_for<mode>(bound_ns_, "recv(udp)",
                            [&](int flags) { return ::recv(socket_, message.data(), message.size(), flags); });
    });
  }

 private:
  UdpSocket ends_;
  int socket_;
  sockaddr_in peer_{};
  std::uint64_t bound_ns_ = 0;
  bool is_full_ = false;
};

static_assert(PolledTransport<Udp<Receive::blocking>> && PolledTransport<Udp<Receive::polling>>);

/// Through datagram sockets.
struct UdpDevice : SocketDevice<Udp> {
  static constexpr Layer layer = Layer::udp;
  static constexpr std::string_view door = "socket";
  static constexpr bool has_flows = true;
  using SocketDevice::SocketDevice;
};

static_assert(Device<UdpDevice>);

}  // namespace fabricbench

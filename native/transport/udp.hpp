// Layer udp: a datagram to an address at each send, as on the layer ip below it, so that the two differ by the layer
// and nothing else: a connected socket would let the kernel keep the route, which raw IP sockets look up for each
// packet. What strangers send does not carry the launch's token.
#pragma once

#include <sys/socket.h>

#include "base/socket.hpp"
#include "transport/device.hpp"
#include "transport/internet.hpp"
#include "transport/transport.hpp"
#include "transport/waiting.hpp"

namespace fabricbench {

/// The part of a UDP path's life that is not timed.
class UdpSocket {
 public:
  UdpSocket(const Attachment& attachment, AddressFamily family)
      : scope_(scope_of(attachment)), socket_(open_socket(domain_of(family), SOCK_DGRAM, 0, "SOCK_DGRAM")) {
    bind_to(socket_, needed_address(attachment, family));
    enlarge_receive_buffer(socket_);
    tell_of_full_queues(socket_, family);
  }
  std::string address() const { return SocketAddress::bound_to(socket_).text(); }
  void meet(std::string_view peer) {
    peer_ = SocketAddress::parse(peer, scope_);
    drain(socket_);  // what strangers sent so far
  }
  const Descriptor& socket() const { return socket_; }
  const SocketAddress& peer() const { return peer_; }

 private:
  std::uint32_t scope_;
  SocketAddress peer_;
  Descriptor socket_;
};

template <Receive mode>
class Udp {
 public:
  static constexpr Traits traits = datagram_traits;
  using Stamps = InternetStamps;

  Udp(const Attachment& attachment, const Site&, AddressFamily family = AddressFamily::ipv4)
      : ends_(attachment, family), socket_(ends_.socket().get()) {}
  // Of IPv6 the header is not counted in a packet's length; its datagrams are as long as IPv4's all the same.
  std::size_t largest_message() const { return 65535 - ip_header_bytes_of(AddressFamily::ipv4) - 8; }
  std::string address() const { return ends_.address(); }
  void meet(std::string_view peer) {
    ends_.meet(peer);
    peer_ = ends_.peer();
  }
  void set_bound(double seconds) { bound_ns_ = seconds_to_ns(seconds); }

  void send(std::span<const std::byte> message) {
    send_some("sendto(udp)",
              [&] { return ::sendto(socket_, message.data(), message.size(), 0, peer_.get(), peer_.size()); });
  }

  int descriptor() const { return socket_; }
  int sending_descriptor() const { return socket_; }
  bool has_full_interface() const { return is_full_; }
  GrantedBuffers granted_buffers() const { return fabricbench::granted_buffers(socket_, socket_); }

  std::size_t try_send(std::span<const std::byte> message) {
    return try_send_datagram("sendto(udp)", is_full_, [&] {
      return ::sendto(socket_, message.data(), message.size(), MSG_DONTWAIT, peer_.get(), peer_.size());
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
  SocketAddress peer_;
  std::uint64_t bound_ns_ = 0;
  bool is_full_ = false;
};

static_assert(PolledTransport<Udp<Receive::blocking>> && PolledTransport<Udp<Receive::polling>>);

/// Through datagram sockets.
struct UdpDevice : InternetDevice<Udp> {
  static constexpr Layer layer = Layer::udp;
  static constexpr std::string_view door = "socket";
  static constexpr bool has_flows = true;
  static constexpr bool has_stages = true;
  using InternetDevice::InternetDevice;
};

static_assert(Device<UdpDevice>);

}  // namespace fabricbench

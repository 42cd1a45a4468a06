// Layer ip: packets of the two protocol numbers that are kept for experiments (RFC 3692), one for each direction,
// because both ends may have one address (the loopback's). A raw socket of IPv4 hands up the header; it is read into a
// place apart, so that the message begins where the payload does. One of IPv6 hands up the payload alone.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include "base/socket.hpp"
#include "transport/device.hpp"
#include "transport/internet.hpp"
#include "transport/transport.hpp"
#include "transport/waiting.hpp"

namespace fabricbench {

/// The part of a path's life that is not timed.
class IpSockets {
 public:
  IpSockets(const Attachment& attachment, const Site& site, AddressFamily family)
      : scope_(scope_of(attachment)),
        own_address_(needed_address(attachment, family)),
        header_bytes_(family == AddressFamily::ipv4 ? ip_header_bytes_of(family) : 0),
        out_(open_raw(domain_of(family), site.is_first ? protocol_forth : protocol_back)),
        in_(open_raw(domain_of(family), site.is_first ? protocol_back : protocol_forth)) {
    admit_nothing(out_);
    enlarge_receive_buffer(out_);  // the kernel's stamps of what is sent lie in it (transport/staged.hpp)
    bind_to(out_, own_address_);
    tell_of_full_queues(out_, family);
    enlarge_receive_buffer(in_);
    // Every raw socket of this protocol on a host sees what any rank there is sent by that peer: without the filter the
    // paths of a pattern of many ranks would fill each other's buffers.
    admit_only_token(in_, site.token, static_cast<std::uint32_t>(header_bytes_));
    bind_to(in_, own_address_);
  }
  std::string address() const { return own_address_.text(); }
  void meet(std::string_view peer) {
    const SocketAddress address = SocketAddress::parse(peer, scope_);
    connect_to(out_, address);
    connect_to(in_, address);
    drain(in_);  // what strangers sent before the kernel knew the peer
  }
  const Descriptor& out() const { return out_; }
  const Descriptor& in() const { return in_; }
  /// What a packet begins with, as it is received.
  std::size_t header_bytes() const { return header_bytes_; }

 private:
  // Use for experimentation and testing, RFC 3692: from the first end to the second, and back.
  static constexpr int protocol_forth = 253;
  static constexpr int protocol_back = 254;

  static Descriptor open_raw(int domain, int protocol) { return open_socket(domain, SOCK_RAW, protocol, "SOCK_RAW"); }

  std::uint32_t scope_;
  SocketAddress own_address_;
  std::size_t header_bytes_;
  Descriptor out_;
  Descriptor in_;
};

template <Receive mode>
class Ip {
 public:
  static constexpr Traits traits = datagram_traits;
  using Stamps = InternetStamps;

  Ip(const Attachment& attachment, const Site& site, AddressFamily family = AddressFamily::ipv4)
      : ends_(attachment, site, family),
        out_(ends_.out().get()),
        in_(ends_.in().get()),
        header_bytes_(ends_.header_bytes()) {}
  // IPv6 does not count its header in a packet's length, but that of fragments.
  std::size_t largest_message() const { return 65535 - ip_header_bytes_of(AddressFamily::ipv4); }
  std::string address() const { return ends_.address(); }
  void meet(std::string_view peer) { ends_.meet(peer); }
  void set_bound(double seconds) { bound_ns_ = seconds_to_ns(seconds); }

  void send(std::span<const std::byte> message) {
    send_some("send(raw IP)", [&] { return ::send(out_, message.data(), message.size(), 0); });
  }

  int descriptor() const { return in_; }
  int sending_descriptor() const { return out_; }
  std::size_t header_bytes() const { return header_bytes_; }
  bool has_full_interface() const { return is_full_; }
  GrantedBuffers granted_buffers() const { return fabricbench::granted_buffers(in_, out_); }

  std::size_t try_send(std::span<const std::byte> message) {
    return try_send_datagram("send(raw IP)", is_full_,
                             [&] { return ::send(out_, message.data(), message.size(), MSG_DONTWAIT); });
  }

  std::size_t try_receive(std::span<std::byte> message) {
    Packet packet(message, header_bytes_);
    for (;;) {
      const std::size_t size = try_receive_datagram("recvmsg(raw IP)", smallest_packet(),
                                                    [&](int flags) { return packet.take(in_, flags); });
      if (size == 0) return 0;
      if (packet.has_no_options()) [[likely]]
        return size - header_bytes_;
    }
  }

  bool receive(std::span<std::byte> message) {
    Packet packet(message, header_bytes_);
    for (;;) {
      const ssize_t size =
          wait_for<mode>(bound_ns_, "recvmsg(raw IP)", [&](int flags) { return packet.take(in_, flags); });
      if (size >= static_cast<ssize_t>(smallest_packet()) && packet.has_no_options()) [[likely]]
        return true;
      if (size < 0) return false;
    }
  }

 private:
  std::size_t smallest_packet() const { return header_bytes_ + sizeof(DatagramHeader); }

  /// Where one packet is received: its header apart, its payload in the message.
  class Packet {
   public:
    Packet(std::span<std::byte> message, std::size_t header_bytes)
        : parts_{iovec{header_.data(), header_bytes}, iovec{message.data(), message.size()}} {
      header_[0] = version_4_without_options;
      packet_.msg_iov = parts_.data();
      packet_.msg_iovlen = parts_.size();
    }
    Packet(const Packet&) = delete;
    Packet& operator=(const Packet&) = delete;
    ssize_t take(int socket, int flags) { return ::recvmsg(socket, &packet_, flags); }
    /// Of IPv6, whose header is not handed up, always.
    bool has_no_options() const { return header_[0] == version_4_without_options; }

   private:
    static constexpr std::byte version_4_without_options{0x45};
    std::array<std::byte, ip_header_bytes_of(AddressFamily::ipv4)> header_;
    std::array<iovec, 2> parts_;
    msghdr packet_{};
  };

  IpSockets ends_;
  int out_;
  int in_;
  std::size_t header_bytes_;
  std::uint64_t bound_ns_ = 0;
  bool is_full_ = false;
};

static_assert(PolledTransport<Ip<Receive::blocking>> && PolledTransport<Ip<Receive::polling>>);

/// Through raw sockets. Packets have no ports: each socket admits those that carry the token of its path.
struct IpDevice : InternetDevice<Ip> {
  static constexpr Layer layer = Layer::ip;
  static constexpr std::string_view door = "raw";
  static constexpr bool has_flows = true;
  static constexpr bool has_stages = true;
  using InternetDevice::InternetDevice;
};

static_assert(Device<IpDevice>);

}  // namespace fabricbench

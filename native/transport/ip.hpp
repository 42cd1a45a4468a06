// Layer ip: IPv4 packets of the two protocol numbers that are kept for experiments (RFC 3692), one for each direction,
// because both ends may have one address (the loopback's). A raw socket hands up the IP header; it is read into a place
// apart, so that the message begins where the payload does.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include "base/socket.hpp"
#include "transport/device.hpp"
#include "transport/transport.hpp"
#include "transport/waiting.hpp"

namespace fabricbench {

/// The part of a path's life that is not timed.
class IpSockets {
 public:
  static constexpr std::uint32_t ip_header_bytes = 20;  // without options

  IpSockets(const Attachment& attachment, const Site& site)
      : own_address_(needed_address(attachment)),
        out_(open_raw(site.is_first ? protocol_forth : protocol_back)),
        in_(open_raw(site.is_first ? protocol_back : protocol_forth)) {
    admit_nothing(out_);
    bind_to(out_, socket_address(own_address_, 0));
    // Makes send() tell when the interface's queue was full (ENOBUFS); else the kernel would drop the packet and say
    // nothing.
    set_option(out_, IPPROTO_IP, IP_RECVERR, 1, "IP_RECVERR");
    enlarge_receive_buffer(in_);
    // Every raw socket of this protocol on a host sees what any rank there is sent by that peer: without the filter the
    // paths of a pattern of many ranks would fill each other's buffers.
    admit_only_token(in_, site.token, ip_header_bytes);
    bind_to(in_, socket_address(own_address_, 0));
  }
  std::string address() const { return endpoint_text(own_address_, 0); }
  void meet(std::string_view peer) {
    const sockaddr_in address = parse_endpoint(peer);
    connect_to(out_, address);
    connect_to(in_, address);
    drain(in_);  // what strangers sent before the kernel knew the peer
  }
  const Descriptor& out() const { return out_; }
  const Descriptor& in() const { return in_; }

 private:
  // Use for experimentation and testing, RFC 3692: from the first end to the second, and back.
  static constexpr int protocol_forth = 253;
  static constexpr int protocol_back = 254;

  static Descriptor open_raw(int protocol) { return open_socket(AF_INET, SOCK_RAW, protocol, "SOCK_RAW"); }

  std::uint32_t own_address_;
  Descriptor out_;
  Descriptor in_;
};

template <Receive mode>
class Ip {
 public:
  static constexpr Traits traits = datagram_traits;

  Ip(const Attachment& attachment, const Site& site)
      : ends_(attachment, site), out_(ends_.out().get()), in_(ends_.in().get()) {}
  std::size_t largest_message() const { return 65535 - ip_header_bytes; }
  std::string address() const { return ends_.address(); }
  void meet(std::string_view peer) { ends_.meet(peer); }
  void set_bound(double seconds) { bound_ns_ = seconds_to_ns(seconds); }

  void send(std::span<const std::byte> message) {
    send_some("send(raw IP)", [&] { return ::send(out_, message.data(), message.size(), 0); });
  }

  int descriptor() const { return in_; }
  int sending_descriptor() const { return out_; }
  bool has_full_interface() const { return is_full_; }
  GrantedBuffers granted_buffers() const { return fabricbench::granted_buffers(in_, out_); }

  std::size_t try_send(std::span<const std::byte> message) {
    return try_send_datagram("send(raw IP)", is_full_,
                             [&] { return ::send(out_, message.data(), message.size(), MSG_DONTWAIT); });
  }

  std::size_t try_receive(std::span<std::byte> message) {
    Packet packet(message);
    for (;;) {
      const std::size_t size =
          try_receive_datagram("recvmsg(raw IP)", smallest_packet, [&](int flags) { return packet.take(in_, flags); });
      if (size == 0) return 0;
      if (packet.has_no_options()) [[likely]]
        return size - ip_header_bytes;
    }
  }

  bool receive(std::span<std::byte> message) {
    Packet packet(message);
    for (;;) {
      const ssize_t size =
          wait_for<mode>(bound_ns_, "recvmsg(raw IP)", [&](int flags) { return packet.take(in_, flags); });
      if (size >= static_cast<ssize_t>(smallest_packet) && packet.has_no_options()) [[likely]]
        return true;
      if (size < 0) return false;
    }
  }

 private:
  static constexpr std::size_t ip_header_bytes = IpSockets::ip_header_bytes;
  static constexpr std::size_t smallest_packet = ip_header_bytes + sizeof(DatagramHeader);

  /// Where one packet is received: its header apart, its payload in the message.
  class Packet {
   public:
    explicit Packet(std::span<std::byte> message)
        : parts_{iovec{header_.data(), header_.size()}, iovec{message.data(), message.size()}} {
      packet_.msg_iov = parts_.data();
      packet_.msg_iovlen = parts_.size();
    }
    Packet(const Packet&) = delete;
    Packet& operator=(const Packet&) = delete;
    ssize_t take(int socket, int flags) { return ::recvmsg(socket, &packet_, flags); }
    bool has_no_options() const { return header_[0] == version_4_without_options; }

   private:
    static constexpr std::byte version_4_without_options{0x45};
    std::array<std::byte, ip_header_bytes> header_;
    std::array<iovec, 2> parts_;
    msghdr packet_{};
  };

  IpSockets ends_;
  int out_;
  int in_;
  std::uint64_t bound_ns_ = 0;
  bool is_full_ = false;
};

static_assert(PolledTransport<Ip<Receive::blocking>> && PolledTransport<Ip<Receive::polling>>);

/// Through raw sockets. Packets have no ports: each socket admits those that carry the token of its path.
struct IpDevice : SocketDevice<Ip> {
  static constexpr Layer layer = Layer::ip;
  static constexpr std::string_view door = "raw";
  static constexpr bool has_flows = true;
  using SocketDevice::SocketDevice;
};

static_assert(Device<IpDevice>);

}  // namespace fabricbench

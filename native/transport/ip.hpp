// Layer ip: IPv4 packets of the two protocol numbers that are kept for experiments (RFC 3692), one for each direction,
// because both ends may have one address (the loopback's). A raw socket hands up the IP header; it is read into a place
// apart, so that the message begins where the payload does.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include "core/descriptor.hpp"
#include "transport/datagram.hpp"
#include "transport/transport.hpp"
#include "transport/waiting.hpp"

namespace fabricbench {

/// The part of a path's life that is not timed.
class IpSockets {
 public:
  explicit IpSockets(const Site& site);
  std::string address() const;
  void meet(std::string_view peer);
  const Descriptor& out() const { return out_; }
  const Descriptor& in() const { return in_; }

 private:
  std::uint32_t own_address_;
  Descriptor out_;
  Descriptor in_;
};

template <Receive mode>
class Ip {
 public:
  static constexpr Traits traits{.is_reliable = false, .is_ordered = false, .smallest_message = sizeof(DatagramHeader)};

  explicit Ip(const Site& site) : ends_(site), out_(ends_.out().get()), in_(ends_.in().get()) {}
  std::size_t largest_message() const { return 65535 - ip_header_bytes; }
  std::string address() const { return ends_.address(); }
  void meet(std::string_view peer) { ends_.meet(peer); }
  void set_bound(double seconds) { bound_ns_ = seconds_to_ns(seconds); }

  void send(std::span<const std::byte> message) {
    send_some("send(raw IP)", [&] { return ::send(out_, message.data(), message.size(), 0); });
  }

  bool receive(std::span<std::byte> message) {
    constexpr ssize_t smallest = ip_header_bytes + sizeof(DatagramHeader);
    std::array<std::byte, ip_header_bytes> header;
    std::array<iovec, 2> parts{iovec{header.data(), header.size()}, iovec{message.data(), message.size()}};
    msghdr packet{};
    packet.msg_iov = parts.data();
    packet.msg_iovlen = parts.size();
    for (;;) {
      const ssize_t size =
          wait_for<mode>(bound_ns_, "recvmsg(raw IP)", [&](int flags) { return ::recvmsg(in_, &packet, flags); });
      if (size >= smallest && header[0] == version_4_without_options) [[likely]]
        return true;
      if (size < 0) return false;
    }
  }

 private:
  static constexpr std::size_t ip_header_bytes = 20;
  static constexpr std::byte version_4_without_options{0x45};

  IpSockets ends_;
  int out_;
  int in_;
  std::uint64_t bound_ns_ = 0;
};

static_assert(Transport<Ip<Receive::blocking>> && Transport<Ip<Receive::polling>>);

}  // namespace fabricbench

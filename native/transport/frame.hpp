// Layer frame: Ethernet frames of our own type, a message in each. The two local experimental types of IEEE 802 are
// used, one for each direction, because both ends may sit on one interface (the loopback), where everybody sees every
// frame. Frames go through the interface's queue, so that a full queue slows the sender down instead of losing its
// frames.
#pragma once

#include <linux/if_packet.h>
#include <sys/socket.h>

#include <array>
#include <cstring>

#include "base/socket.hpp"
#include "transport/device.hpp"
#include "transport/staged.hpp"
#include "transport/transport.hpp"
#include "transport/waiting.hpp"

#ifndef PACKET_IGNORE_OUTGOING
#define PACKET_IGNORE_OUTGOING 23
#endif

namespace fabricbench {

// IEEE 802, local experimental EtherTypes 1 and 2: from the first end to the second, and back.
inline constexpr std::uint16_t frame_type_forth = 0x88b5;
inline constexpr std::uint16_t frame_type_back = 0x88b6;

/// Of Ethernet, from one end of a path to the other, for doors that write it themselves.
class FrameHeader {
 public:
  FrameHeader(const Interface& interface, const Site& site) {
    std::memcpy(&bytes_[6], interface.mac.data(), interface.mac.size());
    const std::uint16_t type = htons(site.is_first ? frame_type_forth : frame_type_back);
    std::memcpy(&bytes_[12], &type, sizeof type);
  }
  void set_peer(const MacAddress& mac) { std::memcpy(bytes_.data(), mac.data(), mac.size()); }

  static constexpr std::size_t bytes = 14;
  /// Write a frame with it; how long that is.
  std::size_t write_before(std::span<const std::byte> message, std::byte* frame) const {
    std::memcpy(frame, bytes_.data(), bytes);
    std::memcpy(frame + bytes, message.data(), message.size());
    return bytes + message.size();
  }

 private:
  std::array<std::byte, bytes> bytes_{};
};

/// The part of a path's life that is not timed.
class FrameSocket {
 public:
  /// Opened without a protocol, a packet socket receives nothing until it is bound to one.
  /// @param type SOCK_DGRAM, or SOCK_RAW for frames with their headers
  FrameSocket(const Attachment& attachment, const Site& site, int type = SOCK_DGRAM)
      : interface_(needed_interface(attachment)), socket_(open_socket(AF_PACKET, type, 0, "AF_PACKET")) {
    set_option(socket_, SOL_PACKET, PACKET_IGNORE_OUTGOING, 1, "PACKET_IGNORE_OUTGOING");
    enlarge_receive_buffer(socket_);
    admit_only_token(socket_, site.token, type == SOCK_RAW ? FrameHeader::bytes : 0);
    sockaddr_ll own{};
    own.sll_family = AF_PACKET;
    own.sll_protocol = htons(site.is_first ? frame_type_back : frame_type_forth);
    own.sll_ifindex = interface_.index;
    if (bind(socket_.get(), reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0) {
      fail_with_errno("bind(AF_PACKET, " + interface_.name + ")");
    }
    peer_ = own;
    peer_.sll_protocol = htons(site.is_first ? frame_type_forth : frame_type_back);
  }
  std::string address() const { return mac_text(interface_.mac); }
  void meet(std::string_view peer) {
    const MacAddress mac = parse_mac(peer);
    peer_.sll_halen = static_cast<unsigned char>(mac.size());
    std::memcpy(peer_.sll_addr, mac.data(), mac.size());
  }
  const Descriptor& socket() const { return socket_; }
  const sockaddr_ll& peer() const { return peer_; }
  const Interface& interface() const { return interface_; }
  std::size_t mtu() const { return static_cast<std::size_t>(interface_.mtu); }

 private:
  Interface interface_;
  sockaddr_ll peer_{};
  Descriptor socket_;
};

/// What paths of frames are stamped by (transport/staged.hpp).
struct FrameStamps {
  /// The upper bit is the mark: a frame has no place for one but its message. Other paths have it after 2^31 messages,
  /// and where a stream says that it has ended.
  static constexpr std::uint32_t first_number = 1U << 31U;
  static bool is_origin(const cmsghdr& told) {
    return told.cmsg_level == SOL_PACKET && told.cmsg_type == PACKET_TX_TIMESTAMP;
  }
  static void mark(int) {}
};

template <Receive mode>
class Frame {
 public:
  static constexpr Traits traits = datagram_traits;
  using Stamps = FrameStamps;

  Frame(const Attachment& attachment, const Site& site) : ends_(attachment, site), socket_(ends_.socket().get()) {}
  std::size_t largest_message() const { return ends_.mtu(); }
  std::string address() const { return ends_.address(); }
  void meet(std::string_view peer) { ends_.meet(peer); }
  void set_bound(double seconds) { bound_ns_ = seconds_to_ns(seconds); }

  void send(std::span<const std::byte> message) {
    const auto* to = reinterpret_cast<const sockaddr*>(&ends_.peer());
    send_some("sendto(AF_PACKET)",
              [&] { return ::sendto(socket_, message.data(), message.size(), 0, to, sizeof(sockaddr_ll)); });
  }

  int descriptor() const { return socket_; }
  int sending_descriptor() const { return socket_; }
  bool has_full_interface() const { return is_full_; }
  GrantedBuffers granted_buffers() const { return fabricbench::granted_buffers(socket_, socket_); }

  std::size_t try_send(std::span<const std::byte> message) {
    const auto* to = reinterpret_cast<const sockaddr*>(&ends_.peer());
    return try_send_datagram("sendto(AF_PACKET)", is_full_, [&] {
      return ::sendto(socket_, message.data(), message.size(), MSG_DONTWAIT, to, sizeof(sockaddr_ll));
    });
  }

  std::size_t try_receive(std::span<std::byte> message) {
    return try_receive_datagram("recv(AF_PACKET)", sizeof(DatagramHeader),
                                [&](int flags) { return ::recv(socket_, message.data(), message.size(), flags); });
  }

  bool receive(std::span<std::byte> message) {
    return receive_datagram(traits.smallest_message, [&] {
      return wait_for<mode>(bound_ns_, "recv(AF_PACKET)",
                            [&](int flags) { return ::recv(socket_, message.data(), message.size(), flags); });
    });
  }

 private:
  FrameSocket ends_;
  int socket_;
  std::uint64_t bound_ns_ = 0;
  bool is_full_ = false;
};

static_assert(PolledTransport<Frame<Receive::blocking>> && PolledTransport<Frame<Receive::polling>>);

/// Through packet sockets. Frames have no ports: each socket admits those that carry the token of its path.
struct FrameDevice : SocketDevice<Frame> {
  static constexpr Layer layer = Layer::frame;
  static constexpr std::string_view door = "packet";
  static constexpr bool has_flows = true;
  static constexpr bool has_stages = true;
  using SocketDevice::SocketDevice;
  template <Receive way>
  Staged<Frame<way>, way> open_staged(const Site& site, const PlanProbe&) const {
    return {attachment(), site};
  }
};

static_assert(Device<FrameDevice>);

}  // namespace fabricbench

// Layer frame through packet rings: frames as in frame.hpp, received where the kernel puts them, in a ring that the
// socket shares with it, so that a receiver that spins makes no system call. They are sent with their headers, to the
// interface that the socket is bound to: a call that takes no address sent 15 % more of them in a second. A ring for
// sending (PACKET_TX_RING) takes a call for each frame, too, and 10 % more of a round trip.
#pragma once

#include <cstring>
#include <vector>

#include "base/packet_ring.hpp"
#include "transport/frame.hpp"

namespace fabricbench {

/// How much memory the receive ring of a path has: a ring takes all of it at once.
inline std::size_t ring_bytes_of_path(const Attachment& attachment, const Site& site) {
  constexpr std::size_t of_all = std::size_t{32} << 20U;
  return std::clamp(part_of_path(of_all, attachment, site), std::size_t{512} << 10U, std::size_t{8} << 20U);
}

template <Receive mode>
class RingFrame {
 public:
  static constexpr Traits traits = datagram_traits;

  RingFrame(const Attachment& attachment, const Site& site, std::size_t ring_bytes)
      : ends_(attachment, site, SOCK_RAW),
        socket_(ends_.socket().get()),
        header_(ends_.interface(), site),
        out_(FrameHeader::bytes + ends_.mtu()),
        ring_(ends_.socket(), out_.size(), ring_bytes, "the kernel has too little memory to spare: use fewer paths"),
        slot_(ring_.slot(0)) {}
  std::size_t largest_message() const { return ends_.mtu(); }
  std::string address() const { return ends_.address(); }
  void meet(std::string_view peer) { header_.set_peer(parse_mac(peer)); }
  void set_bound(double seconds) { bound_ns_ = seconds_to_ns(seconds); }
  GrantedBuffers granted_buffers() const {
    return {static_cast<int>(ring_.bytes()), fabricbench::granted_buffers(socket_, socket_).send_bytes};
  }

  void send(std::span<const std::byte> message) {
    const std::size_t size = header_.write_before(message, out_.data());
    send_some("send(AF_PACKET)", [&] { return ::send(socket_, out_.data(), size, 0); });
  }

  int descriptor() const { return socket_; }
  int sending_descriptor() const { return socket_; }
  bool has_full_interface() const { return is_full_; }

  std::size_t try_send(std::span<const std::byte> message) {
    const std::size_t size = header_.write_before(message, out_.data());
    return try_send_datagram("send(AF_PACKET)", is_full_,
                             [&] { return ::send(socket_, out_.data(), size, MSG_DONTWAIT); });
  }

  std::size_t try_receive(std::span<std::byte> message) {
    return try_receive_datagram("a packet ring", sizeof(DatagramHeader), [&](int) { return take(message); });
  }

  bool receive(std::span<std::byte> message) {
    return receive_datagram(traits.smallest_message, [&] {
      return wait_on_ring<mode>(bound_ns_, "poll(AF_PACKET)", socket_, [&] { return take(message); });
    });
  }

 private:
  /// As recv(2) without waiting.
  ssize_t take(std::span<std::byte> message) {
    if ((__atomic_load_n(&slot_->tp_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER) == 0) {
      errno = EAGAIN;
      return -1;
    }
    const std::size_t size = std::min<std::size_t>(slot_->tp_snaplen - FrameHeader::bytes, message.size());
    std::memcpy(message.data(), reinterpret_cast<const std::byte*>(slot_) + slot_->tp_net, size);
    __atomic_store_n(&slot_->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
    next_ = next_ + 1 == ring_.slots() ? 0 : next_ + 1;
    slot_ = ring_.slot(next_);
    return static_cast<ssize_t>(size);
  }

  FrameSocket ends_;
  int socket_;
  FrameHeader header_;
  std::vector<std::byte> out_;
  PacketRing ring_;
  tpacket2_hdr* slot_;  // the next to be filled
  std::uint32_t next_ = 0;
  std::uint64_t bound_ns_ = 0;
  bool is_full_ = false;
};

static_assert(PolledTransport<RingFrame<Receive::blocking>> && PolledTransport<RingFrame<Receive::polling>>);

/// Through packet sockets with a receive ring each.
class FrameRingDevice : public PlainMemory, public InterfaceTraffic {
 public:
  static constexpr Layer layer = Layer::frame;
  static constexpr std::string_view door = "ring";
  static constexpr bool has_flows = true;
  static constexpr std::array receives{Receive::blocking, Receive::polling};
  template <Receive way>
  using Path = RingFrame<way>;

  explicit FrameRingDevice(const Attachment& attachment) : attachment_(attachment) {}
  template <Receive way>
  Path<way> open(const Site& site) const {
    return Path<way>(attachment_, site, ring_bytes_of_path(attachment_, site));
  }

 private:
  Attachment attachment_;
};

static_assert(Device<FrameRingDevice>);

}  // namespace fabricbench

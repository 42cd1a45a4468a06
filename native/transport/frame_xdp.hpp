// Layer frame through AF_XDP: frames as in frame.hpp, handed over at the interface, before the kernel's stack makes
// anything of them and past the interface's queue, which slows no sender down here: what is too fast for the line is
// lost. Two doors: the program that catches frames runs in the stack (generic mode, any driver), or in the driver.
#pragma once

#include <cstring>
#include <memory>
#include <utility>

#include "transport/frame.hpp"
#include "transport/xdp_port.hpp"

#ifndef SO_PREFER_BUSY_POLL
#define SO_PREFER_BUSY_POLL 69
#define SO_BUSY_POLL_BUDGET 70
#endif

namespace fabricbench {

template <Receive mode>
class XdpFrame {
 public:
  static constexpr Traits traits = datagram_traits;

  XdpFrame(const Interface& interface, std::shared_ptr<XdpPort> port, XdpMode xdp_mode, const Site& site)
      : interface_(interface),
        xdp_mode_(xdp_mode),
        place_(std::move(port), site.token),
        queue_(place_.sending_queue()),
        sending_(place_.sockets()[queue_].socket.get()),
        receiving_(place_.descriptor()),
        header_(interface, site) {
    if constexpr (mode == Receive::polling) poll_busily();
  }

  std::size_t largest_message() const {
    return std::min(static_cast<std::size_t>(interface_.mtu), place_.port().largest_frame() - FrameHeader::bytes);
  }
  std::string address() const { return mac_text(interface_.mac); }
  void meet(std::string_view peer) {
    const MacAddress mac = parse_mac(peer);
    if (mac == interface_.mac) {
      throw Failure(FailureCode::unsupported, "both ends are on " + interface_.name +
                                                  ", where a program catches frames once: place one rank a node, or "
                                                  "take door packet or ring");
    }
    header_.set_peer(mac);
  }
  /// Before each cell: the other mode may have had the interface meanwhile.
  void set_bound(double seconds) {
    place_.port().use(xdp_mode_);
    bound_ns_ = seconds_to_ns(seconds);
    is_busy_polling_ = mode == Receive::polling && has_queue_to_drive();
  }
  GrantedBuffers granted_buffers() const {
    return {static_cast<int>(place_.port().receive_bytes()),
            fabricbench::granted_buffers(sending_, sending_).send_bytes};
  }

  void send(std::span<const std::byte> message) {
    bool is_put = false;
    send_some("sendto(AF_XDP)", [&]() -> ssize_t {
      is_put = is_put || put(message);
      if (hand_over() && is_put) [[likely]]
        return static_cast<ssize_t>(message.size());
      errno = ENOBUFS;
      return -1;
    });
  }

  void queue(std::span<const std::byte> message) {
    if (++queued_ < most_queued && put(message)) [[likely]]
      return;
    queued_ = 0;
    send(message);  // with all that were queued
  }
  void send_queued() {
    if (std::exchange(queued_, 0) == 0) return;
    send_some("sendto(AF_XDP)", [&]() -> ssize_t {
      if (hand_over()) [[likely]]
        return 0;
      errno = ENOBUFS;
      return -1;
    });
  }

  int descriptor() const { return receiving_; }
  int sending_descriptor() const { return sending_; }
  bool has_full_interface() const { return is_full_; }

  std::size_t try_send(std::span<const std::byte> message) {
    is_full_ = (is_owing_ && !hand_over()) || !put(message);
    if (is_full_) [[unlikely]]
      return 0;
    is_owing_ = !hand_over();
    return message.size();
  }

  std::size_t try_receive(std::span<std::byte> message) {
    return try_receive_datagram("recv(AF_XDP)", sizeof(DatagramHeader), [&](int) { return take(message); });
  }

  bool receive(std::span<std::byte> message) {
    return receive_datagram(traits.smallest_message, [&] {
      return wait_on_ring<mode>(bound_ns_, "poll(AF_XDP)", receiving_, [&] { return take(message); });
    });
  }

 private:
  static constexpr unsigned most_queued = 32;  // the kernel sends no more by one call (TX_BATCH_SIZE)

  /// Copy a message into a frame that is to be sent; false where no chunk is free.
  bool put(std::span<const std::byte> message) {
    std::byte* const chunk = place_.port().take_chunk(queue_);
    if (chunk == nullptr) [[unlikely]]
      return false;
    xdp_desc frame{};
    frame.addr = place_.port().place_of(chunk);
    frame.len = static_cast<std::uint32_t>(header_.write_before(message, chunk));
    place_.sockets()[queue_].to_send.push(frame);  // it has room for all chunks
    return true;
  }

  /// Have the kernel send what has been put; whether it has taken all of it.
  bool hand_over() {
    if (::sendto(sending_, nullptr, 0, MSG_DONTWAIT, nullptr, 0) < 0) [[unlikely]] {
      const bool is_for_now = is_empty_or_full(errno) || errno == EBUSY || errno == ENOBUFS || errno == EINTR;
      if (!is_for_now) fail_with_errno("sendto(AF_XDP)");
    }
    return place_.sockets()[queue_].to_send.is_empty();
  }

  /// As recv(2) without waiting.
  ssize_t take(std::span<std::byte> message) {
    for (std::size_t i = 0; i < place_.sockets().size(); ++i) {
      xdp_desc received;
      if (!place_.sockets()[i].received.pop(received)) continue;
      const std::span<const std::byte> payload = place_.port().frame(received).subspan(FrameHeader::bytes);
      const std::size_t size = std::min(payload.size(), message.size());
      std::memcpy(message.data(), payload.data(), size);
      place_.port().give_back(i, received);
      return static_cast<ssize_t>(size);
    }
    if (is_owing_) [[unlikely]]
      is_owing_ = !hand_over();
    if (is_busy_polling_) drive_queues();
    errno = EAGAIN;
    return -1;
  }

  /// Where the kernel knows which queues of the driver feed the sockets, and lets us.
  bool has_queue_to_drive() {
    for (const XdpSocket& each : place_.sockets()) {
      int queue = 0;
      socklen_t size = sizeof queue;
      if (getsockopt(each.socket.get(), SOL_SOCKET, SO_INCOMING_NAPI_ID, &queue, &size) == 0 && queue != 0) return true;
    }
    return false;
  }
  void drive_queues() {
    for (const XdpSocket& each : place_.sockets()) {
      ::recvfrom(each.socket.get(), nullptr, 0, MSG_DONTWAIT, nullptr, nullptr);
    }
  }

  /// Have a receiver that spins drive the driver's queue itself, where the system lets it; without, it waits for
  /// interrupts as others do.
  void poll_busily() {
    constexpr int yes = 1;
    constexpr int at_once_us = 20;
    constexpr int frames_at_once = 64;
    for (const XdpSocket& each : place_.sockets()) {
      const int socket = each.socket.get();
      setsockopt(socket, SOL_SOCKET, SO_PREFER_BUSY_POLL, &yes, sizeof yes);
      setsockopt(socket, SOL_SOCKET, SO_BUSY_POLL, &at_once_us, sizeof at_once_us);
      setsockopt(socket, SOL_SOCKET, SO_BUSY_POLL_BUDGET, &frames_at_once, sizeof frames_at_once);
    }
  }

  Interface interface_;
  XdpMode xdp_mode_;
  XdpPlace place_;
  std::size_t queue_;  // that it sends through
  int sending_;
  int receiving_;
  FrameHeader header_;
  std::uint64_t bound_ns_ = 0;
  unsigned queued_ = 0;
  bool is_full_ = false;
  bool is_owing_ = false;  // the kernel has not taken what try_send() put
  bool is_busy_polling_ = false;
};

template <XdpMode xdp_mode>
class XdpDevice : public PlainMemory, public InterfaceTraffic {
 public:
  static constexpr Layer layer = Layer::frame;
  static constexpr std::string_view door = xdp_mode == XdpMode::native ? "xdp-native" : "xdp";
  static constexpr bool has_flows = true;
  static constexpr std::array receives{Receive::blocking, Receive::polling};
  template <Receive way>
  using Path = XdpFrame<way>;

  explicit XdpDevice(const Attachment& attachment)
      : interface_(needed_interface(attachment)), port_(XdpPort::of(interface_, xdp_mode)) {}
  template <Receive way>
  Path<way> open(const Site& site) const {
    return Path<way>(interface_, port_, xdp_mode, site);
  }

 private:
  Interface interface_;
  std::shared_ptr<XdpPort> port_;
};

using FrameXdpDevice = XdpDevice<XdpMode::generic>;
using FrameXdpNativeDevice = XdpDevice<XdpMode::native>;
static_assert(QueueingTransport<XdpFrame<Receive::polling>>);
static_assert(Device<FrameXdpDevice> && Device<FrameXdpNativeDevice>);

}  // namespace fabricbench

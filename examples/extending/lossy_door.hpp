// Two doors as examples: datagrams between processes of one host (AF_UNIX), so that they need no network and no
// privileges. Behind `lossy`, into layer udp, messages are lost, doubled and overtaken by a rule; `faithful`, into
// layer tcp, delivers each once and in order, and lets round trips post their receives ahead. What they did to how many
// bytes stands beside the network interfaces in the record of each cell.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/failure.hpp"
#include "transport/device.hpp"
#include "transport/transport.hpp"
#include "transport/waiting.hpp"

namespace fabricbench {

/// What becomes of the n-th message of a path: of every 16 one is lost, one comes twice, and one is overtaken by the
/// next. Which, the path's token says.
enum class Fate { arrives, is_lost, is_doubled, is_overtaken };
inline constexpr std::uint32_t fate_period = 16;
constexpr Fate fate_of(std::uint32_t token, std::uint32_t number) {
  switch ((token + number) % fate_period) {
    case 3:
      return Fate::is_lost;
    case 8:
      return Fate::is_doubled;
    case 12:
      return Fate::is_overtaken;
    default:
      return Fate::arrives;
  }
}

/// What a device and its paths count.
struct UnixBytes {
  InterfaceBytes messages;  // that patterns sent and received
  InterfaceBytes lost;
  InterfaceBytes doubled;
  InterfaceBytes overtaken;
  InterfaceBytes preposted;  // sent while a receive was posted, and received where one was
};

/// The part of a path's life that is not timed.
class UnixSocket {
 public:
  UnixSocket() : socket_(open_socket(AF_UNIX, SOCK_DGRAM, 0, "AF_UNIX")) {
    sockaddr_un own{};
    own.sun_family = AF_UNIX;  // bound without a name, it gets one from the kernel, which begins with a zero
    if (bind(socket_.get(), reinterpret_cast<const sockaddr*>(&own), sizeof own.sun_family) != 0) {
      fail_with_errno("bind(AF_UNIX)");
    }
  }
  const Descriptor& socket() const { return socket_; }
  std::string address() const {
    sockaddr_un own{};
    socklen_t size = sizeof own;
    if (getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&own), &size) != 0) fail_with_errno("getsockname");
    return {own.sun_path + 1, size - before_name};
  }
  void meet(std::string_view peer) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    peer.copy(address.sun_path + 1, sizeof address.sun_path - 1);
    const auto size = static_cast<socklen_t>(before_name + peer.size());
    if (connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) {
      fail_with_errno("connect(AF_UNIX)");
    }
  }

 private:
  static constexpr std::size_t before_name = offsetof(sockaddr_un, sun_path) + 1;
  Descriptor socket_;
};

template <Receive mode, bool is_lossy>
class UnixPath {
 public:
  static constexpr Traits traits{.is_reliable = !is_lossy,
                                 .is_ordered = !is_lossy,
                                 .framing = Framing::message,
                                 .smallest_message = is_lossy ? sizeof(DatagramHeader) : 1};

  UnixPath(UnixBytes& bytes, const Site& site) : bytes_(bytes), token_(site.token), socket_(ends_.socket().get()) {
    owed_.reserve(largest_message());
  }
  std::size_t largest_message() const { return std::size_t{64} << 10U; }
  std::string address() const { return ends_.address(); }
  void meet(std::string_view peer) { ends_.meet(peer); }
  void set_bound(double seconds) { bound_ns_ = seconds_to_ns(is_lossy ? seconds : reliable_bound_seconds); }

  void send(std::span<const std::byte> message) { take(message, 0); }
  bool receive(std::span<std::byte> message) {
    const ssize_t size = wait_for<mode>(
        bound_ns_, "recv(AF_UNIX)", [&](int flags) { return ::recv(socket_, message.data(), message.size(), flags); });
    if (size < 0 && !is_lossy) throw Failure(FailureCode::timeout, "nothing came for 10 s: is the peer alive?");
    if (size < 0) return false;
    bytes_.messages.received += static_cast<std::size_t>(size);
    return true;
  }

  int descriptor() const { return socket_; }
  int sending_descriptor() const { return socket_; }
  bool has_full_interface() const { return false; }
  std::size_t try_send(std::span<const std::byte> message) { return take(message, MSG_DONTWAIT) ? message.size() : 0; }
  std::size_t try_receive(std::span<std::byte> message) {
    const std::size_t size = try_receive_datagram("recv(AF_UNIX)", traits.smallest_message, [&](int flags) {
      return ::recv(socket_, message.data(), message.size(), flags);
    });
    bytes_.messages.received += size;
    return size;
  }

  void prepost(std::span<std::byte> message)
    requires(!is_lossy)
  {
    if (posted_.empty()) posted_ = message;
  }
  bool receive_preposted()
    requires(!is_lossy)
  {
    receive(posted_);
    bytes_.preposted.received += std::exchange(posted_, {}).size();
    return true;
  }
  /// Nobody but receive_preposted() writes there, so that nothing need be kept.
  void release_preposted(std::shared_ptr<const void>)
    requires(!is_lossy)
  {
    posted_ = {};
  }

 private:
  /// Do with the next message what its fate is; false where there is no room for it.
  bool take(std::span<const std::byte> message, int flags) {
    if (!pay(flags)) return false;
    const Fate fate = is_lossy ? fate_of(token_, number_) : Fate::arrives;
    const bool goes_now = fate == Fate::arrives || fate == Fate::is_doubled;
    if (goes_now && !transmit(message, flags)) return false;
    ++number_;
    bytes_.messages.sent += message.size();
    if (!posted_.empty()) bytes_.preposted.sent += message.size();
    if (fate == Fate::is_lost) bytes_.lost.sent += message.size();
    if (fate == Fate::is_doubled) bytes_.doubled.sent += message.size();
    if (fate == Fate::is_overtaken) bytes_.overtaken.sent += message.size();
    if (fate == Fate::is_doubled || fate == Fate::is_overtaken) owed_.assign(message.begin(), message.end());
    is_due_ = goes_now && !owed_.empty();
    pay(flags);
    return true;
  }
  /// Send what is due; whether nothing is left that is.
  bool pay(int flags) {
    if (!is_due_ || !transmit(owed_, flags)) return !is_due_;
    owed_.clear();
    is_due_ = false;
    return true;
  }
  bool transmit(std::span<const std::byte> message, int flags) {
    const auto attempt = [&] { return ::send(socket_, message.data(), message.size(), flags | MSG_NOSIGNAL); };
    bool is_full = false;
    return (flags == 0 ? send_some("send(AF_UNIX)", attempt) : try_send_datagram("send(AF_UNIX)", is_full, attempt)) >
           0;
  }

  UnixBytes& bytes_;
  std::uint32_t token_;
  UnixSocket ends_;
  int socket_;
  std::uint64_t bound_ns_ = 0;
  std::uint32_t number_ = 0;
  std::vector<std::byte> owed_;  // a second copy or what is overtaken
  bool is_due_ = false;          // it goes next
  std::span<std::byte> posted_;
};

template <bool is_lossy>
class UnixDevice : public PlainMemory {
 public:
  static constexpr Layer layer = is_lossy ? Layer::udp : Layer::tcp;
  static constexpr std::string_view door = is_lossy ? "lossy" : "faithful";
  static constexpr bool has_flows = true;
  static constexpr std::array receives{Receive::blocking, Receive::polling};
  template <Receive way>
  using Path = UnixPath<way, is_lossy>;

  explicit UnixDevice(const Attachment&) {}
  template <Receive way>
  Path<way> open(const Site& site) {
    return {bytes_, site};
  }
  Traffic traffic() const {
    Traffic all = read_traffic_counters();
    const std::string name(door);
    all[name] = bytes_.messages;
    all[name + " lost"] = bytes_.lost;
    all[name + " doubled"] = bytes_.doubled;
    all[name + " overtaken"] = bytes_.overtaken;
    all[name + " preposted"] = bytes_.preposted;
    return all;
  }

 private:
  UnixBytes bytes_;
};

using LossyDevice = UnixDevice<true>;
using FaithfulDevice = UnixDevice<false>;
static_assert(Device<LossyDevice> && PolledTransport<LossyDevice::Path<Receive::blocking>>);
static_assert(Device<FaithfulDevice> && PrepostingTransport<FaithfulDevice::Path<Receive::blocking>>);

}  // namespace fabricbench

// Doors that only tests have. Behind `strict`, messages must lie in memory that the device has lent, and a rank can be
// told that it lends no more; behind `standing`, a receiver can be told to stand still.
#pragma once

#include <time.h>

#include <functional>
#include <map>
#include <utility>

#include "examples/extending/lossy_door.hpp"
#include "transport/udp.hpp"

namespace fabricbench {

/// What a strict device has lent and not got back, and after how many more buffers it lends none.
struct Lent {
  std::map<const std::byte*, std::size_t> buffers;

  bool has(std::span<const std::byte> message) const {
    const auto after = buffers.upper_bound(message.data());
    if (message.empty()) return true;
    if (after == buffers.begin()) return false;
    const auto& [begin, bytes] = *std::prev(after);
    return message.data() + message.size() <= begin + bytes;
  }
};

/// On this rank: of what size a strict device lends no buffers, and how it refuses.
struct Refusal {
  std::size_t bytes = 0;
  std::function<void()> refuse;
};
inline Refusal refusal;

template <Receive mode, bool is_lossy>
class StrictPath : public UnixPath<mode, is_lossy> {
 public:
  StrictPath(UnixBytes& bytes, const Lent& lent, const Site& site)
      : UnixPath<mode, is_lossy>(bytes, site), lent_(lent) {}

  void send(std::span<const std::byte> message) { UnixPath<mode, is_lossy>::send(lent(message)); }
  bool receive(std::span<std::byte> message) { return UnixPath<mode, is_lossy>::receive(lent(message)); }
  std::size_t try_send(std::span<const std::byte> message) { return UnixPath<mode, is_lossy>::try_send(lent(message)); }
  std::size_t try_receive(std::span<std::byte> message) { return UnixPath<mode, is_lossy>::try_receive(lent(message)); }
  void prepost(std::span<std::byte> message)
    requires(!is_lossy)
  {
    UnixPath<mode, is_lossy>::prepost(lent(message));
  }

 private:
  template <class Byte>
  std::span<Byte> lent(std::span<Byte> message) const {
    if (lent_.has(message)) return message;
    throw Failure(FailureCode::error, "this memory is not from the device");
  }

  const Lent& lent_;
};

template <bool is_lossy>
class StrictDevice : public InterfaceTraffic {
 public:
  static constexpr Layer layer = is_lossy ? Layer::udp : Layer::tcp;
  static constexpr std::string_view door = "strict";
  static constexpr bool has_flows = true;
  static constexpr std::array receives{Receive::blocking, Receive::polling};
  template <Receive way>
  using Path = StrictPath<way, is_lossy>;

  explicit StrictDevice(const Attachment&) {}
  template <Receive way>
  Path<way> open(const Site& site) {
    return {bytes_, *lent_, site};
  }
  MessageBuffer allocate(std::size_t bytes, MemoryKind) {
    if (refusal.refuse && refusal.bytes == bytes) refusal.refuse();
    const auto memory = std::make_shared<MessageBuffer>(bytes);
    lent_->buffers[memory->data()] = bytes;
    return {std::shared_ptr<std::byte>(memory->data(),
                                       [memory, lent = lent_](std::byte* data) { lent->buffers.erase(data); }),
            bytes};
  }

 private:
  UnixBytes bytes_;
  std::shared_ptr<Lent> lent_ = std::make_shared<Lent>();
};

using StrictLossyDevice = StrictDevice<true>;
using StrictFaithfulDevice = StrictDevice<false>;
static_assert(Device<StrictLossyDevice> && Device<StrictFaithfulDevice>);

/// On this rank: after so many receives that were in vain or not, how long the next one stands still.
struct Standstill {
  std::size_t after = 0;
  double seconds = 0;
};
inline Standstill standstill;

/// UDP, whose senders do not wait for a receiver that stands still.
template <Receive mode>
class StandingPath : public Udp<mode> {
 public:
  using Udp<mode>::Udp;
  bool receive(std::span<std::byte> message) {
    if (standstill.seconds > 0 && standstill.after-- == 0) {
      const std::uint64_t until = Clock::now() + seconds_to_ns(std::exchange(standstill.seconds, 0));
      const timespec a_while{0, 10'000'000};  // the watchdog interrupts sleeps
      while (Clock::now() < until) nanosleep(&a_while, nullptr);
    }
    return Udp<mode>::receive(message);
  }
};

struct StandingDevice : SocketDevice<StandingPath> {
  static constexpr Layer layer = Layer::udp;
  static constexpr std::string_view door = "standing";
  static constexpr bool has_flows = true;
  using SocketDevice::SocketDevice;
};
static_assert(Device<StandingDevice>);

/// What sends and receives and no more: two ranks could use it, groups could not.
template <Receive>
class PlainPath {
 public:
  static constexpr Traits traits{
      .is_reliable = true, .is_ordered = true, .framing = Framing::message, .smallest_message = 1};
  static std::size_t largest_message() { return 1; }
  static std::string address() { return {}; }
  void meet(std::string_view) {}
  void set_bound(double) {}
  void send(std::span<const std::byte>) {}
  static bool receive(std::span<std::byte>) { return true; }
};
/// The same with slots, which cannot be waited for at once.
template <Receive way>
class SlottedPath : public PlainPath<way> {
 public:
  static constexpr std::size_t slots = 1;
  void post_send(std::size_t, std::span<const std::byte>) {}
  void post_receive(std::size_t, std::span<std::byte>) {}
  void wait(std::size_t) {}
  void release_send(std::size_t, const std::shared_ptr<const void>&) {}
  void release_receive(std::size_t, const std::shared_ptr<const void>&) {}
};
template <template <Receive> class PathOf>
struct DeviceOf : PlainMemory, InterfaceTraffic {
  static constexpr Layer layer = Layer::tcp;
  static constexpr std::string_view door = "plain";
  static constexpr bool has_flows = true;
  static constexpr std::array receives{Receive::blocking};
  template <Receive way>
  using Path = PathOf<way>;
  explicit DeviceOf(const Attachment&) {}
  template <Receive way>
  Path<way> open(const Site&) const {
    return {};
  }
};
static_assert(Transport<PlainPath<Receive::blocking>> && !Device<DeviceOf<PlainPath>>);
static_assert(PostingTransport<SlottedPath<Receive::blocking>> && !Device<DeviceOf<SlottedPath>>);

}  // namespace fabricbench

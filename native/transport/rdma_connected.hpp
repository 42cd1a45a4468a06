// What doors into layer rdma have in common that go over reliable connections: their paths and devices, whatever the
// `Transfer` is. Two ways lead a message to the peer. What is posted, in slots or in a pool, waits until the peer has
// granted the receive for it, so that none comes too early, however fast the sender is. send() does not: a round trip
// has its receives posted before anything is sent, and one that comes too early all the same is refused by the adapter
// and sent again (RNR), which takes time and shows.
//
// send() returns when the request is posted. What is no longer than `inline_bytes` is copied by then; a longer message
// is read by the adapter until the peer has it, and patterns do not change it before an answer has come.
#pragma once

#include <array>
#include <memory>
#include <utility>

#include "rdma/connected.hpp"
#include "transport/device.hpp"
#include "transport/rdma_parameters.hpp"

namespace fabricbench {

template <Receive mode, class Transfer>
class ConnectedPath {
 public:
  using Pool = ConnectionPool<Transfer>;
  static constexpr Traits traits{
      .is_reliable = true, .is_ordered = true, .framing = Framing::message, .smallest_message = 0};
  static constexpr bool grants_posted = true;
  static constexpr std::size_t slots = Connection<Transfer>::most_posted;

  ConnectedPath(const std::shared_ptr<Connections<Transfer>>& shared, const Site& site,
                const RdmaParameters& parameters)
      : shared_(shared),
        connection_(std::make_unique<Connection<Transfer>>(shared, site, parameters)),
        depth_(parameters.depth) {}
  void register_once(std::span<std::byte> memory) const { connection_->adapter().register_once(memory); }
  std::size_t largest_message() const { return connection_->largest_message(); }
  RdmaAttachment attachment() const { return connection_->attachment(); }
  std::string address() const { return connection_->address(); }
  void meet(std::string_view peer) { connection_->meet(peer); }
  void set_bound(double) {}  // the adapter sends again what is lost; only a dead peer is given up
  bool has_leftovers() const { return connection_->has_leftovers(); }
  Connection<Transfer>& connection() { return *connection_; }

  /// How many of its slots patterns use.
  std::size_t depth() const { return depth_; }

  void send(std::span<const std::byte> message) {
    const std::uint64_t given = connection_->give(message, false, false);
    connection_->template wait_to_leave<mode>(given);
  }
  bool receive(std::span<std::byte> message) {
    connection_->template wait_for_receive<mode>(connection_->expect(message, false));
    return true;
  }

  void prepost(std::span<std::byte> message) {
    if (preposted_ == 0) preposted_ = connection_->expect(message, false);
  }
  bool receive_preposted() {
    connection_->template wait_for_receive<mode>(preposted_);
    preposted_ = 0;
    return true;
  }
  void release_preposted(std::shared_ptr<const void> memory) {
    preposted_ = 0;
    connection_->release(std::move(memory));
  }

  void post_send(std::size_t slot, std::span<const std::byte> message) {
    slots_[slot] = {.number = connection_->give(message, true, true), .is_send = true};
  }
  void post_receive(std::size_t slot, std::span<std::byte> message) {
    slots_[slot] = {.number = connection_->expect(message, true), .is_send = false};
  }
  void wait(std::size_t slot) {
    const Slot posted = std::exchange(slots_[slot], Slot{});
    if (posted.number == 0) return;
    if (posted.is_send) {
      connection_->template wait_for_send<mode>(posted.number);
    } else {
      connection_->template wait_for_receive<mode>(posted.number);
    }
  }
  void release_send(std::size_t slot, std::shared_ptr<const void> memory) { release(slot, std::move(memory)); }
  void release_receive(std::size_t slot, std::shared_ptr<const void> memory) { release(slot, std::move(memory)); }
  Pool make_pool(std::size_t places) const { return Pool(shared_, places); }

 private:
  struct Slot {
    std::uint64_t number = 0;
    bool is_send = false;
  };

  void release(std::size_t slot, std::shared_ptr<const void> memory) {
    slots_[slot] = {};
    connection_->release(std::move(memory));
  }

  std::shared_ptr<Connections<Transfer>> shared_;
  std::unique_ptr<Connection<Transfer>> connection_;
  std::size_t depth_;
  std::array<Slot, slots> slots_{};
  std::uint64_t preposted_ = 0;
};

template <class Transfer>
class ConnectedDevice : public InterfaceTraffic {
 public:
  static constexpr Layer layer = Layer::rdma;
  static constexpr bool has_flows = true;
  static constexpr std::array receives{Receive::blocking, Receive::polling};
  template <Receive way>
  using Path = ConnectedPath<way, Transfer>;

  explicit ConnectedDevice(const Attachment& attachment)
      : shared_(std::make_shared<Connections<Transfer>>(Adapter::open(attachment))) {}
  MessageBuffer allocate(std::size_t bytes, MemoryKind kind) { return shared_->adapter->allocate(bytes, kind); }
  void forget_events() { shared_->adapter->forget_events(); }
  void refuse_failed() { shared_->adapter->refuse_failed(); }
  template <Receive way>
  Path<way> open(const Site& site, const PlanProbe& probe) {
    return Path<way>(shared_, site, rdma_parameters(probe));
  }

 private:
  std::shared_ptr<Connections<Transfer>> shared_;
};

}  // namespace fabricbench

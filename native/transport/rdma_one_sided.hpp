// What doors into layer rdma have in common whose operations are one rank's alone: their paths and devices, whatever
// the `Access` is.
#pragma once

#include <array>
#include <memory>
#include <utility>

#include "rdma/one_sided.hpp"
#include "transport/device.hpp"
#include "transport/rdma_parameters.hpp"

namespace fabricbench {

template <Receive mode, class Access>
class OneSidedPath {
 public:
  using Pool = OneSidedPool<Access>;
  static constexpr Traits traits = Access::traits;
  static constexpr bool adds = Access::adds;
  static constexpr bool writes = Access::writes;

  OneSidedPath(const std::shared_ptr<OneSidedConnections>& shared, const Site& site, const RdmaParameters& parameters)
      : shared_(shared),
        connection_(std::make_unique<OneSidedConnection<Access>>(shared, site, parameters)),
        depth_(parameters.depth) {}
  void register_once(std::span<std::byte> memory) const { connection_->adapter().register_once(memory); }
  std::size_t largest_message() const {
    return adds ? traits.smallest_message : shared_->adapter->port_attributes().max_message_bytes;
  }
  RdmaAttachment attachment() const { return connection_->attachment(); }
  std::string address() const { return connection_->address(); }
  void meet(std::string_view peer) { connection_->meet(peer); }
  void set_bound(double) {}  // the adapter asks again where no answer comes; only a dead peer is given up
  bool has_leftovers() const { return !connection_->is_idle(); }
  OneSidedConnection<Access>& connection() { return *connection_; }

  std::size_t depth() const { return depth_; }
  Exposed expose(std::span<std::byte> memory) const { return connection_->expose(memory); }
  void aim_at(Exposed exposed) { connection_->aim_at(exposed); }
  std::uint64_t operate(std::span<std::byte> memory, bool wants_completion = true) {
    return connection_->operate(memory, wants_completion);
  }
  void wait_for_byte(const std::byte& place, std::byte value) {
    connection_->template wait_for_byte<mode>(place, value);
  }
  void wait_for(std::uint64_t number) { connection_->template wait_for<mode>(number); }
  void release(std::shared_ptr<const void> memory) { connection_->release(std::move(memory)); }
  Pool make_pool(std::size_t places) const { return Pool(shared_, places); }

 private:
  std::shared_ptr<OneSidedConnections> shared_;
  std::unique_ptr<OneSidedConnection<Access>> connection_;
  std::size_t depth_;
};

template <class Access>
class OneSidedDevice : public InterfaceTraffic {
 public:
  static constexpr Layer layer = Layer::rdma;
  static constexpr bool has_flows = true;
  static constexpr std::array receives{Receive::blocking, Receive::polling};
  template <Receive way>
  using Path = OneSidedPath<way, Access>;

  explicit OneSidedDevice(const Attachment& attachment)
      : shared_(std::make_shared<OneSidedConnections>(Adapter::open(attachment))) {
    Access::refuse_unable(*shared_->adapter);
  }
  MessageBuffer allocate(std::size_t bytes, MemoryKind kind) { return shared_->adapter->allocate(bytes, kind); }
  void forget_events() { shared_->adapter->forget_events(); }
  void refuse_failed() { shared_->adapter->refuse_failed(); }
  template <Receive way>
  Path<way> open(const Site& site, const PlanProbe& probe) {
    return Path<way>(shared_, site, rdma_parameters(probe));
  }

 private:
  std::shared_ptr<OneSidedConnections> shared_;
};

}  // namespace fabricbench

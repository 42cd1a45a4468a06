// Reads, atomic operations and plain writes over reliable connections: this rank works in memory that the other has
// exposed, and the other's adapter answers for it. An `Access` says which operation (transport/rdma_read.hpp,
// rdma_atomic.hpp, rdma_write_plain.hpp).
// Completions are those of sends; the adapter keeps no more outstanding than both ends can, and holds the rest back.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "rdma/connection.hpp"

namespace fabricbench {

/// What the connections of a device share.
struct OneSidedConnections {
  explicit OneSidedConnections(std::shared_ptr<Adapter> opened)
      : adapter(std::move(opened)), completions(std::make_shared<Completions>(adapter)) {}

  std::shared_ptr<Adapter> adapter;
  std::shared_ptr<Completions> completions;
};

template <class Access>
class OneSidedConnection : public ConnectionEnd {
 public:
  OneSidedConnection(std::shared_ptr<OneSidedConnections> shared, const Site& site, const RdmaParameters& parameters)
      : ConnectionEnd(shared->adapter, shared->completions, site, parameters, parameters.depth, 1),
        shared_(std::move(shared)) {}
  ~OneSidedConnection() { end(); }

  std::string address() const { return end_address().text(); }
  void meet(std::string_view text) { meet_end(QueuePairAddress::parse(text)); }

  /// Where the peer finds memory of this rank.
  Exposed expose(std::span<std::byte> memory) const {
    return {.address = reinterpret_cast<std::uintptr_t>(memory.data()),
            .key = adapter().region_of(memory.data()).remote_key};
  }
  /// Where the operations from now on go.
  void aim_at(Exposed exposed) { aim_ = exposed; }

  /// Post an operation on memory; its number. One that wants no completion is over with the next that does.
  std::uint64_t operate(std::span<std::byte> memory, bool wants_completion, int place = -1) {
    verbs::Segment segment{reinterpret_cast<std::uintptr_t>(memory.data()), static_cast<std::uint32_t>(memory.size()),
                           adapter().region_of(memory.data()).local_key};
    verbs::SendRequest request;
    request.segments = &segment;
    request.segment_count = 1;
    Access::describe(request, aim_);
    if constexpr (Access::writes) {
      if (segment.bytes <= pair().inline_bytes()) request.flags |= verbs::send_inline;
    }
    const std::uint64_t number = post(request, wants_completion);
    flow().sends.place_of(number) = place;
    return number;
  }

  template <Receive mode>
  void wait_for(std::uint64_t number) {
    wait<mode>(
        completions().sends(), [&] { return flow().sends.has_done(number); },
        [this] { return completions().take_sends(); }, [] { return false; });
  }
  /// Until a byte of this rank's memory, which the peer writes, has a value.
  template <Receive mode>
  void wait_for_byte(const std::byte& place, std::byte value) {
    const auto has_come = [&] {
      return __atomic_load_n(reinterpret_cast<const unsigned char*>(&place), __ATOMIC_ACQUIRE) ==
             std::to_integer<unsigned char>(value);
    };
    wait<mode>(completions().sends(), has_come, [] { return false; }, [] { return false; });
  }
  bool is_idle() const { return flow().sends.under_way() == 0; }
  void release(std::shared_ptr<const void> memory) { keep(std::move(memory)); }

 private:
  std::shared_ptr<OneSidedConnections> shared_;
  Exposed aim_{};
};

/// Operations under way on many connections of a device, each in a place of its own that whoever posts it chooses.
template <class Access>
class OneSidedPool : public ConnectionPlaces<OneSidedConnection<Access>> {
 public:
  OneSidedPool(std::shared_ptr<OneSidedConnections> shared, std::size_t places)
      : ConnectionPlaces<OneSidedConnection<Access>>(shared->completions, places), shared_(std::move(shared)) {}

  template <class Path>
  void post(std::size_t place, Path& path, std::span<std::byte> memory) {
    this->take_place(place, path.connection()).operate(memory, true, static_cast<int>(place));
  }
  std::span<const int> test() {
    shared_->completions->take_sends(this->begin());
    return this->end();
  }
  void release(std::size_t place, std::shared_ptr<const void> memory) {
    ConnectionPlaces<OneSidedConnection<Access>>::release(place, std::move(memory));
  }

 private:
  std::shared_ptr<OneSidedConnections> shared_;
};

}  // namespace fabricbench

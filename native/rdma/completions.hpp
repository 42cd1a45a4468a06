// What the paths of one device have under way, and who is told when it is complete. All paths share two completion
// queues, one of sends and one of receives, so that a receiver that sleeps is not woken by what it has sent, and one
// look finds what is complete on hundreds of paths. A completion's id names the flow of a path and the number of the
// request there; on a reliable queue pair all requests before it are complete as well.
#pragma once

#include <time.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/failure.hpp"
#include "rdma/queue_pair.hpp"
#include "transport/transport.hpp"
#include "transport/waiting.hpp"

namespace fabricbench {

/// One direction of a path: requests are counted from 1, `done` are complete. `places` are those that a pool gave the
/// requests, by the lowest bits of their numbers; -1 where it did not. `ended` are those that are over however they
/// ended.
struct RequestTally {
  std::uint64_t posted = 0;
  std::uint64_t done = 0;
  std::uint64_t ended = 0;
  std::vector<int> places;

  void make_room(std::size_t most) { places.assign(std::bit_ceil(most + 1), -1); }
  /// No message has a place any more.
  void give_up_room() {
    places.resize(1);
    places.front() = -1;
    places.shrink_to_fit();
  }
  int& place_of(std::uint64_t number) { return places[number & (places.size() - 1)]; }
  bool has_done(std::uint64_t number) const { return done >= number; }
  std::uint64_t under_way() const { return posted - done; }
  bool is_over() const { return std::max(done, ended) == posted; }
};

/// What a path has under way. It stays where it is while its device lives, for a late completion may still name it; the
/// room for its messages goes with its path.
struct Flow {
  std::uint64_t id = 0;
  RequestTally sends;
  RequestTally receives;
  verbs::Status failed = verbs::Status::success;  // the first that is not the consequence of another

  void fail(verbs::Status status) {
    if (failed == verbs::Status::success || failed == verbs::Status::flushed) failed = status;
  }
};

class Completions {
 public:
  /// Ends a flow with its path: what is still told of it later is nobody's, and its room is another's.
  struct EndOfFlow {
    Completions* owner = nullptr;

    void operator()(Flow* flow) const {
      flow->sends.give_up_room();
      flow->receives.give_up_room();
      --owner->living_;
    }
  };
  using FlowHandle = std::unique_ptr<Flow, EndOfFlow>;

  explicit Completions(const std::shared_ptr<Adapter>& adapter)
      : sends_(adapter, begin_entries(*adapter)), receives_(adapter, begin_entries(*adapter)) {}

  CompletionQueue& sends() { return sends_; }
  CompletionQueue& receives() { return receives_; }
  /// How many requests have failed so far, on any path.
  std::uint64_t failures() const { return failures_; }

  /// A flow for a path that has so many requests under way each way.
  FlowHandle add_flow(std::size_t sends, std::size_t receives) {
    // Patterns keep at most a few hundred messages under way, or a handful on each path where there are many.
    constexpr std::size_t of_path = 8;
    const std::size_t entries = first_entries + of_path * living_;
    sends_.reserve(entries);
    receives_.reserve(entries);
    Flow& flow = *flows_.emplace_back(std::make_unique<Flow>());
    flow.id = static_cast<std::uint64_t>(flows_.size() - 1) << number_bits;
    flow.sends.make_room(sends);
    flow.receives.make_room(receives);
    ++living_;
    return FlowHandle(&flow, EndOfFlow{this});
  }

  /// Note what is complete, and `tell(requests, number)` of each request, in their order.
  template <class Tell>
  bool take_sends(Tell tell) {
    return take(sends_, &Flow::sends, tell);
  }
  template <class Tell>
  bool take_receives(Tell tell) {
    return take(receives_, &Flow::receives, tell);
  }
  bool take_sends() {
    return take_sends([](RequestTally&, std::uint64_t) {});
  }
  bool take_receives() {
    return take_receives([](RequestTally&, std::uint64_t) {});
  }

 private:
  static constexpr unsigned number_bits = 40;
  static constexpr std::size_t first_entries = 2048;

  /// Not all adapters resize their queues: enough for 256 paths, and for 768 of soft iWARP, which is one that does not.
  static std::size_t begin_entries(const Adapter& adapter) { return (adapter.port().is_iwarp ? 4 : 2) * first_entries; }

  template <class Tell>
  bool take(CompletionQueue& queue, RequestTally Flow::* direction, Tell tell) {
    const std::span<const verbs::Completion> all = queue.poll();
    for (const verbs::Completion& one : all) {
      Flow& flow = *flows_[one.id >> number_bits];
      const std::uint64_t number = one.id & ((std::uint64_t{1} << number_bits) - 1);
      if (one.status != verbs::Status::success) [[unlikely]] {
        flow.fail(one.status);
        ++failures_;
        (flow.*direction).ended = std::max((flow.*direction).ended, number);
        continue;
      }
      RequestTally& requests = flow.*direction;
      while (requests.done < number) tell(requests, ++requests.done);
    }
    return !all.empty();
  }

  CompletionQueue sends_;
  CompletionQueue receives_;
  std::vector<std::unique_ptr<Flow>> flows_;
  std::size_t living_ = 0;  // of the flows, those whose paths are open
  std::uint64_t failures_ = 0;
};

}  // namespace fabricbench

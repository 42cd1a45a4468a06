// This rank's end of a reliable connection: its queue pair with what is under way on it, and the waits for that. Every
// wait is bounded. One that lasts asks whether the peer is still there, by a write of no bytes, which takes no receive
// of the peer and fails where nobody acknowledges it: a receiver learns so that its sender is gone.
//
// What is posted (rdma/connected.hpp) waits for room at the peer: an end grants the receives that it has posted by a
// write into the memory of the other, and a message without a grant is kept back until there is one.
//
// Where the device speaks iWARP, librdmacm makes the connection (rdma/manager.hpp). There every message waits for its
// receive, since one that comes too early ends the connection, and a write of no bytes asks nobody: its completion says
// that TCP has it. An end reads from the peer's memory instead, and gives up itself where no answer comes.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rdma/completions.hpp"
#include "rdma/manager.hpp"

namespace fabricbench {

class ConnectionEnd {
 public:
  /// Room for so many requests each way, beside those that the connection itself posts.
  ConnectionEnd(std::shared_ptr<Adapter> adapter, std::shared_ptr<Completions> completions, const Site& site,
                const RdmaParameters& parameters, std::size_t sends, std::size_t receives);
  ~ConnectionEnd() = default;
  ConnectionEnd(const ConnectionEnd&) = delete;
  ConnectionEnd& operator=(const ConnectionEnd&) = delete;

  const Adapter& adapter() const { return *adapter_; }
  Completions& completions() { return *completions_; }
  Flow& flow() { return *flow_; }
  const Flow& flow() const { return *flow_; }
  QueuePair& pair() { return pair_; }
  const QueuePair& pair() const { return pair_; }
  /// How this rank is attached, with what is in force on the path.
  RdmaAttachment attachment() const;
  /// Throw the Failure of a device that has told of one.
  void refuse_failed_device() const { adapter_->refuse_failed(); }
  std::size_t largest_message() const { return adapter_->port_attributes().max_message_bytes; }

  bool has_room() const { return flow_->sends.under_way() < most_sends_; }
  /// Post a request; `wants_completion`, or at the latest after so many without one. Waits while there is no room.
  std::uint64_t post(verbs::SendRequest& request, bool wants_completion) {
    if (!has_room()) [[unlikely]]
      wait_for_room();
    if (!wants_completion && flow_->sends.posted + 1 - last_signaled_ < moderation_) return post_unmarked(request);
    return post_marked(request);
  }
  std::uint64_t post(verbs::ReceiveRequest& request) {
    const std::uint64_t number = ++flow_->receives.posted;
    request.id = flow_->id | number;
    flow_->receives.place_of(number) = -1;
    pair_.post(request);
    return number;
  }

  /// What the peer has to know of this end, and the way to the peer by what that has told.
  QueuePairAddress end_address() const;
  void meet_end(const QueuePairAddress& peer);
  /// Whether messages have to wait for receives, all of them.
  bool is_strict() const { return managed_ != nullptr; }
  verbs::Segment no_memory() const { return managed_ ? managed_->no_memory() : verbs::Segment{}; }

  /// Throw the Failure of the flow, once it is known what failed first.
  [[noreturn]] void fail();
  void refuse_failed() {
    if (flow_->failed != verbs::Status::success) [[unlikely]]
      fail();
  }

  /// Keep memory until the adapter has let go of all that has been posted so far.
  void keep(std::shared_ptr<const void> memory);
  /// Whether what is still posted would take what the next user is sent.
  bool has_leftovers() const { return flow_->receives.under_way() > 0; }

  /// Ask whether the peer is there, if nothing else is under way that tells.
  void ask_for_peer();

 protected:
  /// End what is under way: the adapter lets go of all buffers before whoever keeps them does. For the destructor.
  void end();

  /// How long a wait has lasted, looked at now and then.
  class WaitTimer {
   public:
    explicit WaitTimer(ConnectionEnd& connection) : connection_(connection) {}
    void look();

   private:
    ConnectionEnd& connection_;
    std::uint64_t begin_ = 0;
    std::uint64_t asked_ = 0;
  };

  /// Take completions of `queue` until `is_done()`. `take()` takes some, and tells whether there were any. `look()`
  /// moves on what is kept back, and tells whether there is any: what lets that go wakes nobody.
  template <Receive mode, class IsDone, class Take, class Look>
  void wait(CompletionQueue& queue, IsDone is_done, Take take, Look look) {
    if (is_done()) return;
    WaitTimer timer(*this);
    // Who sleeps is woken by completions of other paths too: their number says nothing of the time.
    constexpr unsigned polls_per_look = mode == Receive::blocking ? 8 : 256;
    for (unsigned polls = 1;; ++polls) {
      take();
      if (is_done()) [[likely]]
        return;
      refuse_failed();
      if (look()) [[unlikely]] {
        if (is_done()) return;
        sched_yield();
      } else if constexpr (mode == Receive::blocking) {
        queue.arm();
        while (take()) {  // those that came before wake nobody, however many they are
          if (is_done()) return;
        }
        if (is_done()) return;
        refuse_failed();
        if (!queue.sleep()) timer.look();
      } else {
        if (yields_) sched_yield();
      }
      if (polls % polls_per_look == 0) timer.look();
    }
  }

 private:
  std::uint64_t post_marked(verbs::SendRequest& request) {
    request.flags |= verbs::send_signaled;
    last_signaled_ = flow_->sends.posted + 1;
    return post_unmarked(request);
  }
  std::uint64_t post_unmarked(verbs::SendRequest& request) {
    const std::uint64_t number = ++flow_->sends.posted;
    request.id = flow_->id | number;
    flow_->sends.place_of(number) = -1;
    pair_.post(request);
    return number;
  }

  struct Kept {
    std::uint64_t sends;
    std::uint64_t receives;
    std::shared_ptr<const void> memory;
  };

  void wait_for_room();
  void drop_kept();
  void greet();
  void ask_over_stream();

  std::shared_ptr<Adapter> adapter_;
  std::shared_ptr<Completions> completions_;
  int peer_rank_;
  Completions::FlowHandle flow_;
  std::unique_ptr<ManagedConnection> managed_;  // of iWARP; its identifier outlives the queue pair
  QueuePair pair_;
  std::uint64_t most_sends_;
  std::uint64_t moderation_;
  std::uint64_t last_signaled_ = 0;
  bool yields_ = has_one_processor();
  std::vector<Kept> kept_;
  // Of a managed connection: since when the peer has been silent, as far as ask_for_peer() knows.
  std::uint64_t silent_since_ns_ = 0;
  std::uint64_t heard_ = 0;
  bool has_asked_ = false;
};

/// The places of a pool of messages on many connections of a device, each taken by the connection that was the last to
/// post there.
template <class C>
class ConnectionPlaces {
 public:
  ConnectionPlaces(std::shared_ptr<Completions> completions, std::size_t places)
      : completions_(std::move(completions)), places_(places), failures_(completions_->failures()) {
    complete_.reserve(places);
    connections_.reserve(places);
  }
  ConnectionPlaces(const ConnectionPlaces&) = delete;
  ConnectionPlaces& operator=(const ConnectionPlaces&) = delete;

 protected:
  C& take_place(std::size_t place, C& connection) {
    if (std::exchange(places_[place], &connection) != &connection &&
        std::ranges::find(connections_, &connection) == connections_.end())
      connections_.push_back(&connection);
    return connection;
  }
  /// Those that have posted something.
  std::span<C* const> connections() const { return connections_; }

  /// Begin a look for what is complete: what to tell of it.
  auto begin() {
    complete_.clear();
    return [this](RequestTally& requests, std::uint64_t number) {
      if (const int place = requests.place_of(number); place >= 0) complete_.push_back(place);
    };
  }
  /// Its end: the places of what is complete. Throws the Failure of what has failed.
  std::span<const int> end() {
    if (complete_.empty() || failures_ != completions_->failures()) [[unlikely]] {
      look();
    } else {
      silent_since_ns_ = 0;
    }
    return complete_;
  }
  void release(std::size_t place, std::shared_ptr<const void> memory) {
    if (C* const connection = std::exchange(places_[place], nullptr)) connection->release(std::move(memory));
  }

 private:
  /// Where nothing is complete: has something failed, and are the peers still there?
  void look() {
    constexpr std::uint64_t ask_after_ns = 400'000'000;
    if (failures_ != completions_->failures()) {
      failures_ = completions_->failures();
      for (C* const connection : connections_) connection->refuse_failed();
    }
    const std::uint64_t now = Clock::now();
    if (silent_since_ns_ == 0) silent_since_ns_ = now;
    if (now - silent_since_ns_ < ask_after_ns) return;
    silent_since_ns_ = now;
    if (!connections_.empty()) connections_.front()->refuse_failed_device();
    for (C* const connection : connections_) connection->ask_for_peer();
  }

  std::shared_ptr<Completions> completions_;
  std::vector<C*> places_;
  std::vector<C*> connections_;
  std::vector<int> complete_;
  std::uint64_t failures_;
  std::uint64_t silent_since_ns_ = 0;
};

}  // namespace fabricbench

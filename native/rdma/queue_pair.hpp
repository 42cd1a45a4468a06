// A queue pair from its making to its end: made in state INIT, so that receives can be posted before the peers meet;
// connected by what the two ends tell each other; and moved to the state of error before it is destroyed, so that the
// adapter gives back every buffer that it still has. And a completion queue with the channel that wakes who sleeps.
#pragma once

#include <sched.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "rdma/adapter.hpp"
#include "rdma/parameters.hpp"

namespace fabricbench {

/// Completions of many queue pairs.
class CompletionQueue {
 public:
  CompletionQueue(std::shared_ptr<Adapter> adapter, std::size_t entries);
  ~CompletionQueue();
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;

  verbs::CompletionQueue* get() const { return queue_; }
  int descriptor() const { return channel_->descriptor; }
  /// Have room for so many at least. Failure: more than the adapter has.
  void reserve(std::size_t entries);

  /// Take what is complete without waiting.
  std::span<const verbs::Completion> poll() {
    const int count =
        queue_->context->operations.poll(queue_, static_cast<int>(completions_.size()), completions_.data());
    if (count < 0) [[unlikely]]
      fail_polling();
    return std::span(completions_).first(static_cast<std::size_t>(count));
  }
  /// Wake the sleeper at the next completion; those that are there already wake nobody, so that who arms polls again.
  void arm() {
    if (const int error = queue_->context->operations.notify(queue_, 0)) [[unlikely]]
      fail_with_errno(error, "ibv_req_notify_cq");
  }
  /// Sleep until an armed queue has something; false where a Watchdog interrupted the sleep.
  bool sleep() {
    verbs::CompletionQueue* which = nullptr;
    void* user = nullptr;
    if (verbs::library().get_cq_event(channel_, &which, &user) != 0) [[unlikely]]
      return refuse_sleeping();
    if (++unacknowledged_ == acknowledged_at_once) [[unlikely]]
      acknowledge();
    return true;
  }
  /// Take note of an event that poll(2) told of, if there is one.
  void clear_event();

 private:
  static constexpr unsigned acknowledged_at_once = 1024;  // each call takes a lock

  void acknowledge();
  static bool refuse_sleeping();
  [[noreturn]] static void fail_polling();

  std::shared_ptr<Adapter> adapter_;
  verbs::CompletionChannel* channel_ = nullptr;
  verbs::CompletionQueue* queue_ = nullptr;
  unsigned unacknowledged_ = 0;
  std::array<verbs::Completion, 16> completions_{};
};

/// The Q_Key of all datagrams: strangers are told apart by the token of their messages.
inline constexpr std::uint32_t datagram_key = 0x11fab;

/// What one end of a path tells the other, as text over the control plane.
struct QueuePairAddress {
  std::uint32_t number = 0;
  std::uint32_t first_packet = 0;
  std::uint16_t lid = 0;
  std::size_t mtu = 0;
  verbs::Gid gid{};
  int reads = 1;             // of the peer that its adapter answers at once
  std::uint64_t memory = 0;  // that the peer writes to, and its key; 0 where there is none
  std::uint32_t memory_key = 0;
  std::uint16_t port = 0;  // where its ConnectionManager listens, at the address that `gid` stands for; 0 where none
  int roce_version = 0;    // 0: InfiniBand or iWARP

  std::string text() const;
  /// Throws a Failure on anything but what text() makes.
  static QueuePairAddress parse(std::string_view text);
};

class QueuePair {
 public:
  /// In state INIT, with room for so many requests each way.
  QueuePair(std::shared_ptr<Adapter> adapter, verbs::Service service, CompletionQueue& sends, CompletionQueue& receives,
            std::size_t send_requests, std::size_t receive_requests, const RdmaParameters& parameters,
            std::uint32_t key);
  ~QueuePair();
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;

  verbs::QueuePair* get() const { return pair_; }
  std::size_t inline_bytes() const { return inline_bytes_; }
  /// The largest packet on the way to the peer, once it is connected.
  std::size_t path_mtu() const { return path_mtu_; }
  QueuePairAddress address() const;

  /// Lead a reliable one to its peer: ready to receive, and to send.
  void connect(const QueuePairAddress& peer);
  /// Have a datagram's ready; the peer's address is told with each message.
  void activate();
  /// How messages reach a peer, for datagrams.
  verbs::Address way_to(const QueuePairAddress& peer) const;
  /// Everything that is posted completes, as flushed.
  void stop() const;

  void post(verbs::SendRequest& request) {
    verbs::SendRequest* refused = nullptr;
    if (const int error = pair_->context->operations.post_send(pair_, &request, &refused)) [[unlikely]]
      fail_with_errno(std::abs(error), "ibv_post_send");
  }
  void post(verbs::ReceiveRequest& request) {
    verbs::ReceiveRequest* refused = nullptr;
    if (const int error = pair_->context->operations.post_receive(pair_, &request, &refused)) [[unlikely]]
      fail_with_errno(std::abs(error), "ibv_post_recv");
  }

 private:
  void modify(verbs::QueuePairAttributes& attributes, int what, const char* state);

  std::shared_ptr<Adapter> adapter_;
  RdmaParameters parameters_;
  verbs::QueuePair* pair_ = nullptr;
  std::size_t inline_bytes_ = 0;
  std::size_t path_mtu_ = 0;
  std::uint32_t first_packet_ = 0;
};

/// Whether this process has but one processor to itself: whoever waits by spinning then keeps the one that it waits for
/// from running.
inline bool has_one_processor() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) == 1;
}

}  // namespace fabricbench

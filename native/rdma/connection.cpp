#include "rdma/connection.hpp"

namespace fabricbench {
namespace {

// The connection's own: a write that asks for the peer.
constexpr std::size_t own_sends = 2;
// The greeting of who has connected by iWARP, where a write that is to be told is two requests as well.
constexpr std::size_t own_receives = 1;
constexpr std::size_t requests_of_write = 2;
constexpr timespec for_the_adapter{0, 200'000};

}  // namespace

ConnectionEnd::ConnectionEnd(std::shared_ptr<Adapter> adapter, std::shared_ptr<Completions> completions,
                             const Site& site, const RdmaParameters& parameters, std::size_t sends,
                             std::size_t receives)
    : adapter_(std::move(adapter)),
      completions_(std::move(completions)),
      peer_rank_(site.peer_rank),
      flow_(completions_->add_flow(sends + own_sends, receives + own_receives)),
      managed_(adapter_->port().is_iwarp ? std::make_unique<ManagedConnection>(adapter_, site.peer_rank, site.secret,
                                                                               site.is_first, parameters)
                                         : nullptr),
      pair_(adapter_, verbs::Service::reliable, completions_->sends(), completions_->receives(),
            (sends + own_sends) * (managed_ ? requests_of_write : 1), receives + own_receives, parameters, site.token),
      most_sends_(sends),
      moderation_(std::clamp<std::uint64_t>(parameters.moderation, 1, std::max<std::uint64_t>(sends / 2, 1))) {
  if (!managed_) return;
  managed_->lead_to(pair_);
  if (managed_->is_first()) return;
  verbs::Segment nothing = managed_->no_memory();
  verbs::ReceiveRequest greeting{.segments = &nothing, .segment_count = 1};
  post(greeting);
}

QueuePairAddress ConnectionEnd::end_address() const {
  QueuePairAddress own = pair_.address();
  if (managed_) {
    own.gid = gid_of_ipv4(adapter_->manager().address());
    own.port = adapter_->manager().port();
  }
  return own;
}

RdmaAttachment ConnectionEnd::attachment() const {
  RdmaAttachment own = adapter_->attachment();
  own.path_mtu = pair_.path_mtu();
  own.inline_bytes = pair_.inline_bytes();
  return own;
}

void ConnectionEnd::meet_end(const QueuePairAddress& peer) {
  if (!managed_) return pair_.connect(peer);
  managed_->meet(peer);
  greet();
}

/// Of iWARP the end that connects sends first: until then the other may not.
void ConnectionEnd::greet() {
  if (managed_->is_first()) {
    verbs::SendRequest greeting;
    post(greeting, true);
    return;
  }
  CompletionQueue& queue = completions_->receives();
  const auto has_come = [&] {
    queue.clear_event();
    queue.arm();
    while (completions_->take_receives()) continue;
    return flow_->receives.done >= 1 || flow_->failed != verbs::Status::success;
  };
  managed_->wait_for(has_come, "sent its first message", queue.descriptor());
  refuse_failed();
}

void ConnectionEnd::end() {
  constexpr std::uint64_t patience_ns = 200'000'000;
  if (flow_->sends.posted == 0 && flow_->receives.posted == 0) return;
  pair_.stop();
  try {
    if (managed_) {  // all that is not over now is over when the queue pair is destroyed
      for (unsigned looks = 0; looks < 8 && !flow_->receives.is_over(); ++looks) completions_->take_receives();
      return;
    }
    // What asked for no completion may be over without one: the last in the queue tells of all.
    verbs::SendRequest last;
    last.operation = verbs::Operation::write;
    if (!flow_->sends.is_over()) post_marked(last);
    const std::uint64_t deadline = Clock::now() + patience_ns;
    while (!(flow_->sends.is_over() && flow_->receives.is_over()) && Clock::now() < deadline) {
      if (!completions_->take_sends() && !completions_->take_receives()) nanosleep(&for_the_adapter, nullptr);
    }
  } catch (const Failure&) {  // the adapter itself has failed: destroying the queue pair is what is left
  }
}

void ConnectionEnd::fail() {
  constexpr std::uint64_t patience_ns = 300'000'000;
  const std::uint64_t deadline = Clock::now() + patience_ns;
  // What was posted last may be told as flushed before what failed first.
  while (flow_->failed == verbs::Status::flushed && Clock::now() < deadline) {
    if (!completions_->take_sends() && !completions_->take_receives()) nanosleep(&for_the_adapter, nullptr);
  }
  if (managed_ && flow_->failed == verbs::Status::flushed) managed_->refuse_closed();
  verbs::fail_with_status(flow_->failed, "a message over the queue pair to rank " + std::to_string(peer_rank_),
                          adapter_->next_failure());
}

void ConnectionEnd::keep(std::shared_ptr<const void> memory) {
  drop_kept();
  if (flow_->sends.under_way() == 0 && flow_->receives.under_way() == 0) return;
  kept_.push_back({flow_->sends.posted, flow_->receives.posted, std::move(memory)});
}

void ConnectionEnd::drop_kept() {
  std::erase_if(kept_, [&](const Kept& one) {
    return flow_->sends.has_done(one.sends) && flow_->receives.has_done(one.receives);
  });
}

void ConnectionEnd::ask_for_peer() {
  if (managed_) return ask_over_stream();
  if (flow_->failed != verbs::Status::success || !has_room()) return;
  // What has asked for no completion says nothing, not even that it is complete.
  if (!flow_->sends.has_done(last_signaled_)) return;
  verbs::SendRequest nothing;
  nothing.operation = verbs::Operation::write;
  post(nothing, true);
}

void ConnectionEnd::ask_over_stream() {
  if (flow_->failed != verbs::Status::success) return;
  const std::uint64_t now = Clock::now();
  const std::uint64_t heard = flow_->sends.done + flow_->receives.done;
  if (has_asked_ && managed_->has_answer()) has_asked_ = false;
  if (has_asked_ && heard == heard_) {
    if (now - silent_since_ns_ > managed_->patience_ns()) managed_->fail_unanswered();
    return;
  }
  silent_since_ns_ = now;
  heard_ = heard;
  if (has_asked_) return;  // one question at once has room of its own, also where TCP takes nothing any more
  verbs::Segment memory{};
  verbs::SendRequest question = managed_->question(memory);
  post_marked(question);
  has_asked_ = true;
}

void ConnectionEnd::wait_for_room() {
  WaitTimer timer(*this);
  while (flow_->sends.under_way() >= most_sends_) {
    completions_->take_sends();
    if (flow_->sends.under_way() < most_sends_) return;
    refuse_failed();
    sched_yield();
    timer.look();
  }
}

void ConnectionEnd::WaitTimer::look() {
  constexpr std::uint64_t ask_after_ns = 400'000'000;
  const std::uint64_t now = Clock::now();
  if (begin_ == 0) begin_ = asked_ = now;
  connection_.completions_->take_sends();
  connection_.refuse_failed();
  if (now - asked_ > ask_after_ns) {
    asked_ = now;
    connection_.refuse_failed_device();
    connection_.ask_for_peer();
  }
  if (now - begin_ < seconds_to_ns(reliable_bound_seconds)) return;
  throw Failure(FailureCode::timeout, "nothing moved for 10 s over the queue pair to rank " +
                                          std::to_string(connection_.peer_rank_) + ": does the peer still take part?");
}

}  // namespace fabricbench

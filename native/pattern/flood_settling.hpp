// How a flood is settled once its time is over: every sender tells every receiver over the control plane what it sent
// on each path, and receivers take the rest, so that the paths can be used again. And what is said of each channel.
#pragma once

#include <optional>
#include <vector>

#include "base/failure.hpp"
#include "core/measurement.hpp"
#include "pattern/channels.hpp"
#include "transport/transport.hpp"

namespace fabricbench {

/// What a sender tells of one path. The first that a receiver gets from a peer that failed says so.
struct FloodTally {
  static constexpr MessageType message_type = MessageType::flood_tally;
  bool has_failed = true;
  std::uint64_t bytes = 0;
  std::uint64_t messages = 0;
  // Of these the ones from `measured_first` to before `measured_end` were sent while the sender measured, by its clock.
  std::uint64_t measured_first = 0;
  std::uint64_t measured_end = 0;
};

/// Tells each sending link's tally once. However the flood ends, no receiver is left waiting.
template <Transport T>
class FloodTallies {
 public:
  FloodTallies(std::span<LinkOver<T>> links, const CellTeam& team) : links_(links), team_(team) {}
  ~FloodTallies() {
    for (; told_ < links_.size(); ++told_) tell({});
  }
  FloodTallies(const FloodTallies&) = delete;
  FloodTallies& operator=(const FloodTallies&) = delete;

  /// `tally_of(i)` is that of link i.
  template <class TallyOf>
  void tell_all(TallyOf tally_of) {
    for (; told_ < links_.size(); ++told_) tell(tally_of(told_));
  }

  /// The tally of a link that receives if it has come, without waiting. To be asked for in the order of the links.
  std::optional<FloodTally> try_receive(std::size_t link) const {
    const auto tally = team_.try_receive<FloodTally>(links_[link].link.peer);
    if (tally && tally->has_failed) throw_peer_failed();
    return tally;
  }

  /// The tallies of all links that receive, in their order; empty ones in between.
  std::vector<FloodTally> receive_all() const {
    std::vector<FloodTally> tallies(links_.size());
    bool has_failed = false;
    for (std::size_t i = 0; i < links_.size(); ++i) {
      if (!links_[i].link.receives) continue;
      tallies[i] = team_.receive<FloodTally>(links_[i].link.peer);
      has_failed = has_failed || tallies[i].has_failed;
    }
    if (has_failed) throw_peer_failed();
    return tallies;
  }

 private:
  /// What failed is said by the rank that it happened to.
  [[noreturn]] static void throw_peer_failed() {
    throw Failure(FailureCode::timeout, "a peer gave up in the middle: see what it reports");
  }

  void tell(const FloodTally& tally) {
    const Link& link = links_[told_].link;
    if (link.sends) team_.send(link.peer, tally);
  }

  std::span<LinkOver<T>> links_;
  const CellTeam& team_;
  std::size_t told_ = 0;
};

/// What came over one link that receives: all of it, and what of it in the measured phase.
struct FloodReceipt {
  std::uint64_t all_bytes = 0;
  std::uint64_t bytes = 0;
  Counters counters;
};

/// Note what the links of this rank carried. Failure: nothing came at all, before, while or after it was measured.
template <Transport T>
void report_channels(std::span<LinkOver<T>> links, std::span<const FloodReceipt> receipts, std::uint64_t measured_ns,
                     Task& task) {
  std::uint64_t bytes = 0;
  bool has_receiving = false;
  for (std::size_t i = 0; i < links.size(); ++i) {
    if (!links[i].link.receives) continue;
    has_receiving = true;
    bytes += receipts[i].all_bytes;
    task.counters.add(receipts[i].counters);
    ChannelReport channel;
    channel.source = links[i].peer_rank;
    channel.destination = task.team.world_rank(task.team.member());
    channel.flow = links[i].link.flow;
    channel.round = task.round;
    channel.time_ns = {static_cast<std::int64_t>(measured_ns)};
    channel.bytes = {receipts[i].bytes};
    channel.sent = receipts[i].counters.sent;
    channel.lost = receipts[i].counters.lost;
    task.findings.channels.push_back(std::move(channel));
  }
  if (has_receiving && bytes == 0) {
    throw Failure(
        FailureCode::timeout,
        "nothing arrived while all sent as much as they could: is something filtering this protocol on the way?");
  }
}

template <Transport T>
bool has_receiving_link(std::span<LinkOver<T>> links) {
  return std::ranges::any_of(links, [](const LinkOver<T>& link) { return link.link.receives; });
}

}  // namespace fabricbench

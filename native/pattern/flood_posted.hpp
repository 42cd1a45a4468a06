// A flood over a library that takes messages without waiting for them, MPI: on each link several are kept under way in
// each direction, and whatever is complete is posted again. While nothing is complete the rank yields, as libraries do
// that wait, so that ranks which share a processor do not spin against each other.
#pragma once

#include <sched.h>

#include <deque>
#include <vector>

#include "base/failure.hpp"
#include "core/message_buffer.hpp"
#include "pattern/flood_round.hpp"
#include "transport/transport.hpp"

namespace fabricbench {

template <PoolingTransport T>
class PostedFlood {
 public:
  PostedFlood(std::span<LinkOver<T>> links, Task& task)
      : links_(links),
        task_(task),
        message_bytes_(task.probe.message_bytes),
        under_way_(messages_under_way(links.size(), message_bytes_, depth_of(*links.front().path))),
        out_(task.allocate(message_bytes_)),
        states_(links.size()),
        pool_(links.front().path->make_pool(2 * under_way_ * links.size())) {
    for (const LinkOver<T>& link : links_) {
      for (std::size_t i = 0; i < under_way_ && link.link.receives; ++i) {
        in_.push_back(task.allocate(message_bytes_));
      }
    }
    std::size_t buffer = 0;
    for (std::size_t link = 0; link < links_.size(); ++link) {
      states_[link].first_buffer = buffer;
      if (links_[link].link.receives) buffer += under_way_;
    }
  }
  /// Takes back what was posted for messages that will not come, and leaves to the library what it still sends.
  ~PostedFlood() {
    for (std::size_t link = 0; link < links_.size(); ++link) {
      for (std::size_t i = 0; i < under_way_; ++i) {
        pool_.release_send(sending_place(link) + i, out_.keeper());
        if (links_[link].link.receives) {
          pool_.release_receive(receiving_place(link) + i, in_[states_[link].first_buffer + i].keeper());
        }
      }
    }
  }
  PostedFlood(const PostedFlood&) = delete;
  PostedFlood& operator=(const PostedFlood&) = delete;

  void run() {
    FloodTallies<T> tallies(links_, task_.team);
    const bool is_congestor = static_cast<bool>(task_.is_over);
    FloodWindows windows(task_, !is_congestor && (task_.rounds > 1 || has_receiving_link(links_)));
    note_least(task_.findings.values, "messages_under_way", static_cast<double>(under_way_));
    post_receives();
    windows.wait_for_start();
    post_sends();
    drive(windows);
    settle(tallies);
    if (is_congestor) return;
    std::vector<FloodReceipt> receipts;
    for (const State& state : states_) {
      receipts.push_back({.all_bytes = state.came * message_bytes_,
                          .bytes = state.measured * message_bytes_,
                          .counters = {.sent = state.measured}});
    }
    report_channels<T>(links_, receipts, windows.measured_ns(), task_);
  }

 private:
  struct State {
    std::size_t first_buffer = 0;
    std::uint64_t sent = 0;  // posted
    std::uint64_t sending = 0;
    std::uint64_t came = 0;
    std::uint64_t before = 0;  // came before the measured phase
    std::uint64_t measured = 0;
  };

  static constexpr std::uint64_t look_every_ns = 2'000'000;

  /// As many as the bandwidth tests that MPI's users know keep under way, fewer where many links share the library: it
  /// looks at all of them each time. At most 32 MiB, but two of each link.
  static std::size_t messages_under_way(std::size_t links, std::size_t message_bytes, std::size_t depth) {
    constexpr std::size_t most_in_all = 256;
    constexpr std::size_t memory = std::size_t{32} << 20U;
    const std::size_t fair =
        std::clamp<std::size_t>(most_in_all / std::max<std::size_t>(links, 1), 2, std::max<std::size_t>(depth, 2));
    const std::size_t affordable = memory / std::max<std::size_t>(message_bytes * links, 1);
    return std::clamp<std::size_t>(affordable, 2, fair);
  }

  // Places in the pool: for each link first those of its sends, then those of its receives.
  std::size_t sending_place(std::size_t link) const { return 2 * link * under_way_; }
  std::size_t receiving_place(std::size_t link) const { return sending_place(link) + under_way_; }

  void post_receives() {
    for (std::size_t link = 0; link < links_.size(); ++link) {
      for (std::size_t i = 0; i < under_way_ && links_[link].link.receives; ++i) {
        post_receive(link, receiving_place(link) + i);
      }
    }
  }

  void post_sends() {
    // Turn by turn, so that links begin alike.
    for (std::size_t i = 0; i < under_way_; ++i) {
      for (std::size_t link = 0; link < links_.size(); ++link) {
        if (links_[link].link.sends) post_send(link, sending_place(link) + i);
      }
    }
  }

  void post_send(std::size_t link, std::size_t place) {
    pool_.post_send(place, *links_[link].path, out_.span());
    ++states_[link].sent;
    ++states_[link].sending;
  }

  void post_receive(std::size_t link, std::size_t place) {
    pool_.post_receive(place, *links_[link].path,
                       in_[states_[link].first_buffer + place - receiving_place(link)].span());
  }

  void drive(FloodWindows& windows) {
    for (;;) {
      if (const auto phase = windows.note(Clock::now(), came_bytes_)) [[unlikely]]
        enter(*phase);
      if (windows.is_over()) break;
      progress([&](std::size_t link, std::size_t place) { post_send(link, place); },
               [&](std::size_t link, std::size_t place) { post_receive(link, place); });
    }
  }

  void enter(FloodWindows::Phase phase) {
    for (State& state : states_) {
      if (phase == FloodWindows::Phase::measured) state.before = state.came;
      if (phase == FloodWindows::Phase::grace) state.measured = state.came - state.before;
    }
  }

  /// Count what is complete, and hand its place to `sent` or `came`; yield where nothing is.
  template <class Sent, class Came>
  void progress(Sent sent, Came came) {
    const std::span<const int> complete = pool_.test();
    if (complete.empty()) {
      sched_yield();
      return;
    }
    for (const int index : complete) {
      const auto place = static_cast<std::size_t>(index);
      const std::size_t link = place / (2 * under_way_);
      if (place < receiving_place(link)) {
        --states_[link].sending;
        sent(link, place);
      } else {
        ++states_[link].came;
        came_bytes_ += message_bytes_;
        came(link, place);
      }
    }
  }

  /// Go on receiving until everything has been sent and has come. The library moves messages only while it is called,
  /// so nobody sleeps over the control plane meanwhile.
  void settle(FloodTallies<T>& tallies) {
    bool has_told = false;
    std::vector<std::uint64_t> wanted(links_.size(), 0);
    std::size_t heard = 0;  // links before this one have their tally, or need none
    std::uint64_t last_look = Clock::now();
    const Settling settling(task_);
    for (;;) {
      const std::uint64_t now = Clock::now();
      if (now - last_look > look_every_ns) {
        tallies.look_for_failed(heard);
        settling.look();
        last_look = now;
      }
      progress([](std::size_t, std::size_t) {},
               [&](std::size_t link, std::size_t place) { post_receive(link, place); });
      if (!has_told && std::ranges::all_of(states_, [](const State& state) { return state.sending == 0; })) {
        tallies.tell_all([&](std::size_t link) {
          return FloodTally{false, states_[link].sent * message_bytes_, states_[link].sent, 0, 0};
        });
        has_told = true;
      }
      for (; heard < links_.size(); ++heard) {
        if (!links_[heard].link.receives) continue;
        const auto tally = tallies.try_receive(heard);
        if (!tally) break;
        wanted[heard] = tally->messages;
      }
      if (has_told && heard == links_.size() && has_come(wanted)) break;
    }
    tallies.end_well();
  }

  bool has_come(const std::vector<std::uint64_t>& wanted) const {
    for (std::size_t link = 0; link < links_.size(); ++link) {
      if (states_[link].came < wanted[link]) return false;
    }
    return true;
  }

  std::span<LinkOver<T>> links_;
  Task& task_;
  std::size_t message_bytes_;
  std::size_t under_way_;
  MessageBuffer out_;
  std::deque<MessageBuffer> in_;
  std::vector<State> states_;
  typename T::Pool pool_;
  std::uint64_t came_bytes_ = 0;
};

}  // namespace fabricbench

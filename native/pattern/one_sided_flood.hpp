// A flood over paths on which one rank works in memory of the other (pattern/one_sided.hpp): each link that receives
// keeps several operations under way in what its peer has exposed, and whatever is complete is begun again. A rank that
// is only read from sleeps meanwhile. And the verification that goes before it.
#pragma once

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <vector>

#include "pattern/flood_round.hpp"
#include "pattern/one_sided.hpp"

namespace fabricbench {

/// The links of a rank with what it exposes on those that send, and results on those that receive.
template <OneSidedTransport T>
class OneSidedLinks {
 public:
  /// Room for so many results on each link.
  OneSidedLinks(std::span<LinkOver<T>> links, Task& task, std::size_t under_way)
      : links_(links),
        task_(task),
        under_way_(under_way),
        begun_(links.size()),
        exposed_(task.allocate(T::adds ? task.probe.message_bytes * links.size() : task.probe.message_bytes)),
        results_(task.allocate(task.probe.message_bytes * links.size() * under_way)) {
    for (const LinkOver<T>& link : links) {
      LinkOver<T> mirrored = link;
      std::swap(mirrored.link.sends, mirrored.link.receives);
      readers_.push_back(mirrored);
    }
  }

  /// Tell each peer where it finds what this rank exposes to it, and hear the same.
  void exchange() {
    fill_exposed<T>(exposed_.span(), task_.token);
    const auto for_each_peer = [&](bool Link::* direction, auto action) {
      for (std::size_t i = 0; i < links_.size();) {
        const std::size_t peer = links_[i].link.peer;
        std::vector<std::size_t> with_peer;
        for (; i < links_.size() && links_[i].link.peer == peer; ++i) {
          if (links_[i].link.*direction) with_peer.push_back(i);
        }
        if (!with_peer.empty()) action(peer, with_peer);
      }
    };
    for_each_peer(&Link::sends, [&](std::size_t peer, const std::vector<std::size_t>& with_peer) {
      Exposures exposures;
      for (const std::size_t i : with_peer) exposures.all.push_back(links_[i].path->expose(exposed(i)));
      task_.team.send(peer, exposures);
    });
    for_each_peer(&Link::receives, [&](std::size_t peer, const std::vector<std::size_t>& with_peer) {
      const auto exposures = task_.team.template receive<Exposures>(peer);
      for (std::size_t k = 0; k < with_peer.size(); ++k) links_[with_peer[k]].path->aim_at(exposures.all.at(k));
    });
  }

  std::span<std::byte> result(std::size_t link, std::size_t which) {
    const std::size_t bytes = task_.probe.message_bytes;
    return results_.span().subspan((link * under_way_ + which) * bytes, bytes);
  }
  std::shared_ptr<const void> keeper() const { return results_.keeper(); }
  void clear() { std::ranges::fill(results_.span(), std::byte{0}); }

  void note_begun(std::size_t link) { ++begun_[link]; }
  /// Note whether what a place got last is right. Of several additions under way, their order is that of the queue.
  void check(std::size_t link, std::size_t which, std::uint64_t before) {
    ++task_.counters.verified;
    task_.counters.corrupted += is_exposed<T>(result(link, which), task_.token, before) ? 0 : 1;
  }
  std::uint64_t begun(std::size_t link) const { return begun_[link]; }

  /// The links as those see them who work in this rank's memory: what tells of their end goes the other way.
  std::span<LinkOver<T>> readers() { return readers_; }

 private:
  std::span<std::byte> exposed(std::size_t link) {
    const std::size_t bytes = task_.probe.message_bytes;
    return T::adds ? exposed_.span().subspan(link * bytes, bytes) : exposed_.span();
  }

  std::span<LinkOver<T>> links_;
  Task& task_;
  std::size_t under_way_;
  std::vector<std::uint64_t> begun_;
  MessageBuffer exposed_;
  MessageBuffer results_;
  std::vector<LinkOver<T>> readers_;
};

template <OneSidedTransport T>
class OneSidedFlood {
 public:
  OneSidedFlood(std::span<LinkOver<T>> links, Task& task)
      : links_(links),
        task_(task),
        under_way_(operations_under_way(links.size(), task.probe.message_bytes, links.front().path->depth())),
        memory_(links, task, under_way_),
        states_(links.size()),
        newest_(links.size() * under_way_),
        pool_(links.front().path->make_pool(links.size() * under_way_)) {
    for (LinkOver<T>& link : links) link.path->set_bound(task.probe.reply_timeout_seconds);
  }
  ~OneSidedFlood() {
    for (std::size_t place = 0; place < newest_.size(); ++place) pool_.release(place, memory_.keeper());
  }
  OneSidedFlood(const OneSidedFlood&) = delete;
  OneSidedFlood& operator=(const OneSidedFlood&) = delete;

  Outcome run() {
    FloodTallies<T> ends(memory_.readers(), task_.team);
    const bool is_congestor = static_cast<bool>(task_.is_over);
    const bool is_reading = has_receiving_link(links_);
    FloodWindows windows(task_, !is_congestor && (task_.rounds > 1 || is_reading));
    if (is_reading) note_least(task_.findings.values, "messages_under_way", static_cast<double>(under_way_));
    memory_.exchange();
    windows.wait_for_start();
    if (is_reading) begin_all();
    drive(windows, is_reading);
    finish(ends);
    if (!is_congestor) report(windows.measured_ns());
    return flood_outcome(task_);
  }

 private:
  struct State {
    std::uint64_t under_way = 0;
    std::uint64_t came = 0;
    std::uint64_t before = 0;  // came before the measured phase
    std::uint64_t measured = 0;
  };

  /// As many as a path's depth, fewer where many links share the adapter's queue. At most 32 MiB, but
  /// two of each link.
  static std::size_t operations_under_way(std::size_t links, std::size_t message_bytes, std::size_t depth) {
    constexpr std::size_t most_in_all = 256;
    constexpr std::size_t memory = std::size_t{32} << 20U;
    const std::size_t fair = std::clamp<std::size_t>(most_in_all / links, 2, depth);
    return std::clamp<std::size_t>(memory / (message_bytes * links), 2, fair);
  }

  void begin(std::size_t link, std::size_t which) {
    pool_.post(link * under_way_ + which, *links_[link].path, memory_.result(link, which));
    newest_[link * under_way_ + which] = memory_.begun(link);
    memory_.note_begun(link);
    ++states_[link].under_way;
  }

  void begin_all() {
    // Turn by turn, so that links begin alike.
    for (std::size_t i = 0; i < under_way_; ++i) {
      for (std::size_t link = 0; link < links_.size(); ++link) {
        if (links_[link].link.receives) begin(link, i);
      }
    }
  }

  void drive(FloodWindows& windows, bool is_reading) {
    constexpr timespec while_idle{0, 1'000'000};
    for (;;) {
      if (const auto phase = windows.note(Clock::now(), came_bytes_)) [[unlikely]]
        enter(*phase);
      if (windows.is_over()) break;
      if (!is_reading) {
        nanosleep(&while_idle, nullptr);
        continue;
      }
      progress([this](std::size_t link, std::size_t which) { begin(link, which); });
    }
  }

  void enter(FloodWindows::Phase phase) {
    for (State& state : states_) {
      if (phase == FloodWindows::Phase::measured) state.before = state.came;
      if (phase == FloodWindows::Phase::grace) state.measured = state.came - state.before;
    }
  }

  /// Count what is complete, and hand its place to `came`; yield where nothing is.
  template <class Came>
  void progress(Came came) {
    const std::span<const int> complete = pool_.test();
    if (complete.empty()) {
      sched_yield();
      return;
    }
    for (const int place : complete) {
      const std::size_t link = static_cast<std::size_t>(place) / under_way_;
      --states_[link].under_way;
      ++states_[link].came;
      came_bytes_ += task_.probe.message_bytes;
      came(link, static_cast<std::size_t>(place) % under_way_);
    }
  }

  template <class Came>
  void drain(const Settling& settling, Came came) {
    while (std::ranges::any_of(states_, [](const State& state) { return state.under_way > 0; })) {
      progress(came);
      settling.look();
    }
  }

  /// Take what is under way. What came before lies in its place already: one more on each link tells whether it is
  /// right. Then tell those who were worked with, and hear from those who worked here.
  void finish(FloodTallies<T>& ends) {
    const Settling settling(task_);
    drain(settling, [](std::size_t, std::size_t) {});
    memory_.clear();
    for (std::size_t link = 0; link < links_.size(); ++link) {
      if (links_[link].link.receives) begin(link, 0);
    }
    drain(settling, [this](std::size_t link, std::size_t which) {
      memory_.check(link, which, newest_[link * under_way_ + which]);
    });
    ends.tell_all([this](std::size_t link) {
      return FloodTally{false, states_[link].came * task_.probe.message_bytes, states_[link].came, 0, 0};
    });
    ends.receive_all();
    ends.end_well();
  }

  void report(std::uint64_t measured_ns) {
    std::vector<FloodReceipt> receipts;
    for (const State& state : states_) {
      receipts.push_back({.all_bytes = state.came * task_.probe.message_bytes,
                          .bytes = state.measured * task_.probe.message_bytes,
                          .counters = {.sent = state.measured}});
    }
    report_channels<T>(links_, receipts, measured_ns, task_);
  }

  std::span<LinkOver<T>> links_;
  Task& task_;
  std::size_t under_way_;
  OneSidedLinks<T> memory_;
  std::vector<State> states_;
  std::vector<std::uint64_t> newest_;  // of each place: how many operations of its link were begun before it
  typename T::Pool pool_;
  std::uint64_t came_bytes_ = 0;
};

/// The untimed operations before the timing: every link that receives works in what its peer has exposed, and compares.
template <OneSidedTransport T>
class OneSidedVerification {
 public:
  OneSidedVerification(std::span<LinkOver<T>> links, Task& task)
      : links_(links), task_(task), memory_(links, task, 1) {}
  ~OneSidedVerification() {
    for (LinkOver<T>& link : links_) link.path->release(memory_.keeper());
  }
  OneSidedVerification(const OneSidedVerification&) = delete;
  OneSidedVerification& operator=(const OneSidedVerification&) = delete;

  /// Failure: nothing came as it was exposed.
  void run() {
    FloodTallies<T> ends(memory_.readers(), task_.team);
    memory_.exchange();
    for (std::size_t turn = 0; turn < task_.probe.verify_messages; ++turn) {
      memory_.clear();
      for (std::size_t i = 0; i < links_.size(); ++i) {
        if (!links_[i].link.receives) continue;
        links_[i].path->wait_for(links_[i].path->operate(memory_.result(i, 0)));
        memory_.check(i, 0, turn);
      }
    }
    ends.tell_all([](std::size_t) { return FloodTally{.has_failed = false}; });
    ends.receive_all();
    ends.end_well();
    if (task_.counters.verified == 0 || task_.counters.corrupted < task_.counters.verified) return;
    throw Failure(FailureCode::corrupted, "all " + std::to_string(task_.counters.verified) +
                                              " verified messages came with another payload: nothing was timed");
  }

 private:
  std::span<LinkOver<T>> links_;
  Task& task_;
  OneSidedLinks<T> memory_;
};

}  // namespace fabricbench

// Patterns in which all channels carry as much as they can for a while: bistream, star, ring, chaos, incast, outcast,
// bisection, message-rate. A sample is a window of time; its bytes are what arrived on this rank meanwhile, and the
// windows of all ranks are added up to those of the cell. A congestor floods likewise, without samples, until it is
// told to end.
#pragma once

#include <span>
#include <vector>

#include "base/failure.hpp"
#include "core/message_buffer.hpp"
#include "pattern/flood_posted.hpp"
#include "pattern/flood_round.hpp"
#include "pattern/payload.hpp"
#include "transport/readiness.hpp"
#include "transport/transport.hpp"

namespace fabricbench {

/// What both kinds of paths count of a link.
struct FloodLinkState {
  bool can_send = false;
  bool can_receive = false;
  std::uint64_t sent_bytes = 0;
  std::uint64_t sent_messages = 0;
  std::uint64_t measured_first = 0;  // messages sent before the measured phase, and before its end
  std::uint64_t measured_end = 0;
  std::uint64_t came_bytes = 0;
  std::uint64_t came_before = 0;
  FloodReceipt receipt;
};

/// A link over a reliable path. In a byte stream messages lie one behind the other and may be taken in parts.
template <PolledTransport T>
class FloodLink {
 public:
  FloodLink(LinkOver<T>& link, std::size_t message_bytes) : link_(link), message_bytes_(message_bytes) {}

  /// Push some bytes of the next message; false where there is no room.
  bool push(std::span<std::byte> message) {
    const std::size_t taken = link_.path->try_send(message.subspan(sent_part_));
    if (taken == 0) return false;
    state.sent_bytes += taken;
    sent_part_ += taken;
    if (sent_part_ == message.size()) {
      sent_part_ = 0;
      ++state.sent_messages;
    }
    return true;
  }

  /// Take some bytes; false where there are none. `came` grows by what belongs to the flood.
  bool take(std::span<std::byte> message, std::uint64_t& came) {
    const std::size_t taken = link_.path->try_receive(message.subspan(came_part_));
    if (taken == 0) return false;
    state.came_bytes += taken;
    came += taken;
    came_part_ += taken;
    if (came_part_ == message.size()) came_part_ = 0;
    return true;
  }

  void start_counting() {
    state.measured_first = state.sent_messages;
    state.came_before = state.came_bytes;
  }
  void stop_counting() {
    state.measured_end = state.sent_messages;
    state.receipt.bytes = state.came_bytes - state.came_before;
    state.receipt.counters.sent = state.receipt.bytes / message_bytes_;
  }
  bool has_all(const FloodTally& tally) const { return state.came_bytes >= tally.bytes; }
  void finish(const FloodTally&) {}

  FloodLinkState state;

 private:
  LinkOver<T>& link_;
  std::size_t message_bytes_;
  std::size_t sent_part_ = 0;
  std::size_t came_part_ = 0;
};

/// A link over datagrams: each message carries its path's token and a number.
template <PolledTransport T>
  requires(!T::traits.is_reliable)
class FloodLink<T> {
 public:
  FloodLink(LinkOver<T>& link, std::size_t message_bytes)
      : link_(link), message_bytes_(message_bytes), first_(*link.sequence), tracker_(first_) {}

  bool push(std::span<std::byte> message) {
    write_header(message, {link_.token, first_ + static_cast<std::uint32_t>(state.sent_messages)});
    if (link_.path->try_send(message) == 0) return false;
    ++state.sent_messages;
    state.sent_bytes += message_bytes_;
    return true;
  }

  bool take(std::span<std::byte> message, std::uint64_t& came) {
    if (link_.path->try_receive(message) == 0) return false;
    const DatagramHeader header = read_header(message);
    // What strangers sent, and what an earlier cell left on its way, belongs to nobody.
    if (header.token != link_.token || header.sequence - first_ >= half_of_all) [[unlikely]]
      return true;
    const bool is_new = is_measured_ ? note_late(header.sequence) : tracker_.note(header.sequence);
    if (!is_new) [[unlikely]]
      return true;
    newest_ = std::max(newest_, header.sequence - first_ + 1);
    state.came_bytes += message_bytes_;
    came += message_bytes_;
    return true;
  }

  void start_counting() {
    state.measured_first = state.sent_messages;
    state.came_before = state.came_bytes;
    tracker_.start_counting();
  }
  void stop_counting() {
    state.measured_end = state.sent_messages;
    state.receipt.bytes = state.came_bytes - state.came_before;
    state.receipt.counters = tracker_.counters();
    newest_measured_ = newest_;
    is_measured_ = true;
  }
  bool has_all(const FloodTally& tally) const { return newest_ >= tally.messages; }

  /// What was under way when the measured phase ended counts as well, by the sender's numbers of what it sent in it: a
  /// queue that holds much would else show the losses at its end and not what they are a share of. What came late was
  /// sent and is not lost; what never came is both, also where no message behind it shows the gap.
  void finish(const FloodTally& tally) {
    Counters& counters = state.receipt.counters;
    std::uint64_t arrived = difference(counters.sent, counters.lost);
    const std::uint64_t begin = std::max<std::uint64_t>(newest_measured_, tally.measured_first);
    counters.sent += difference(tally.measured_end, begin);
    for (const Late& late : late_) {
      const bool was_overtaken = late.number < newest_measured_;
      if (!was_overtaken && (late.number < begin || late.number >= tally.measured_end)) continue;
      if (late.arrival.duplicated == 0) ++arrived;
      counters.add(late.arrival);
    }
    counters.lost = difference(counters.sent, arrived);
    advance(static_cast<std::uint32_t>(tally.messages));
  }
  /// The numbers of the next cell lie behind those of this one.
  void advance(std::uint32_t messages) { *link_.sequence = std::max(*link_.sequence, first_ + messages); }

  FloodLinkState state;

 private:
  static constexpr std::uint32_t half_of_all = 1U << 31U;

  /// One that came after the measured phase, and whether it was overtaken or a double.
  struct Late {
    std::uint32_t number;
    Counters arrival;
  };

  static std::uint64_t difference(std::uint64_t more, std::uint64_t less) { return more > less ? more - less : 0; }

  /// As SequenceTracker::note; which messages were sent in the measured phase is known when the sender has told.
  bool note_late(std::uint32_t sequence) {
    const Counters before = tracker_.counters();
    const bool is_new = tracker_.note(sequence);
    const Counters after = tracker_.counters();
    late_.push_back({.number = sequence - first_,
                     .arrival = {.reordered = after.reordered - before.reordered,
                                 .duplicated = after.duplicated - before.duplicated}});
    return is_new;
  }

  LinkOver<T>& link_;
  std::size_t message_bytes_;
  std::uint32_t first_;
  std::uint32_t newest_ = 0;  // how many numbers there must have been so far, and when the measured phase ended
  std::uint32_t newest_measured_ = 0;
  bool is_measured_ = false;
  std::vector<Late> late_;
  SequenceTracker tracker_;
};

/// Over paths that never wait: byte streams, and messages with or without guarantees. One thread drives all links of
/// its rank: it pushes where there is room, takes what is there, a quantum on each link in turn, and sleeps when no
/// link can go on.
template <PolledTransport T>
class PolledFlood {
 public:
  PolledFlood(std::span<LinkOver<T>> links, Task& task)
      : links_(links),
        task_(task),
        message_bytes_(task.probe.message_bytes),
        quantum_(quantum_of(links.size(), message_bytes_)),
        is_polling_(task.probe.receive == Receive::polling),
        out_(task.allocate(message_bytes_)),
        in_(task.allocate(message_bytes_)) {
    states_.reserve(links.size());
    for (std::size_t i = 0; i < links.size(); ++i) {
      states_.emplace_back(links_[i], message_bytes_);
      readiness_.watch(i, links_[i].path->descriptor(), links_[i].path->sending_descriptor());
    }
  }

  void run() {
    FloodTallies<T> tallies(links_, task_.team);
    const bool is_congestor = static_cast<bool>(task_.is_over);
    FloodWindows windows(task_, !is_congestor && (task_.rounds > 1 || has_receiving_link(links_)));
    windows.wait_for_start();
    set_all_ready();
    drive(windows);
    settle(tallies);
    if (is_congestor) return;
    std::vector<FloodReceipt> receipts;
    for (FloodLink<T>& link : states_) {
      link.state.receipt.all_bytes = link.state.came_bytes;
      receipts.push_back(link.state.receipt);
    }
    report_channels<T>(links_, receipts, windows.measured_ns(), task_);
  }

 private:
  // Links take turns: so much on one before the next has its turn, and a look at the clock after each round of turns.
  static constexpr std::size_t most_messages_at_once = 16;
  static constexpr std::size_t most_bytes_at_once = std::size_t{256} << 10U;
  // Nothing should be missed asleep; if anything ever is, not for long.
  static constexpr std::uint64_t longest_sleep_ns = 2'000'000;
  // Longer than what queues on the way hold.
  static constexpr std::uint64_t silence_ns = 50'000'000;

  static std::size_t quantum_of(std::size_t links, std::size_t message_bytes) {
    const std::size_t fair = std::clamp<std::size_t>(64 / std::max<std::size_t>(links, 1), 1, most_messages_at_once);
    return std::clamp<std::size_t>(most_bytes_at_once / std::max<std::size_t>(message_bytes, 1), 1, fair);
  }

  void set_all_ready() {
    for (std::size_t i = 0; i < links_.size(); ++i) {
      states_[i].state.can_send = links_[i].link.sends;
      states_[i].state.can_receive = links_[i].link.receives;
    }
  }

  void drive(FloodWindows& windows) {
    for (;;) {
      const std::uint64_t now = Clock::now();
      if (const auto phase = windows.note(now, came_)) [[unlikely]]
        enter(*phase);
      if (windows.is_over()) break;
      push_all();
      take_all();
      wait(now, windows.next());
    }
  }

  void enter(FloodWindows::Phase phase) {
    for (FloodLink<T>& link : states_) {
      if (phase == FloodWindows::Phase::measured) link.start_counting();
      if (phase == FloodWindows::Phase::grace) link.stop_counting();
    }
  }

  /// Begin each time with another link, and after a full queue with the one that found it full: whoever comes first
  /// would have all the room.
  void push_all() {
    is_interface_full_ = false;
    const std::size_t count = states_.size();
    const std::size_t first = first_;
    first_ = first + 1 == count ? 0 : first + 1;
    for (std::size_t k = 0; k < count && !is_interface_full_; ++k) {
      const std::size_t i = first + k < count ? first + k : first + k - count;
      push(i);
    }
  }

  void push(std::size_t i) {
    FloodLink<T>& link = states_[i];
    for (std::size_t n = 0; n < quantum_ && link.state.can_send; ++n) {
      if (link.push(out_.span())) [[likely]]
        continue;
      if (links_[i].path->has_full_interface()) {
        is_interface_full_ = true;
        first_ = i;
        return;
      }
      link.state.can_send = false;
    }
  }

  void take_all() {
    for (FloodLink<T>& link : states_) {
      for (std::size_t n = 0; n < quantum_ && link.state.can_receive; ++n) {
        link.state.can_receive = link.take(in_.span(), came_);
      }
    }
  }

  /// Learn what has become ready; sleep until then, or until `next`, where no link can go on.
  void wait(std::uint64_t now, std::uint64_t next) {
    const bool is_idle = std::ranges::none_of(states_, [&](const FloodLink<T>& link) {
      return (link.state.can_send && !is_interface_full_) || link.state.can_receive;
    });
    std::uint64_t bound = 0;
    if (is_idle && !is_polling_) {
      bound = std::min(next > now ? next - now : 0,
                       is_interface_full_ ? std::uint64_t{interface_retry_ns} : longest_sleep_ns);
    }
    const bool has_found = readiness_.wait(bound, [&](std::size_t i, bool can_receive, bool can_send) {
      FloodLinkState& state = states_[i].state;
      state.can_receive = state.can_receive || (can_receive && links_[i].link.receives);
      state.can_send = state.can_send || (can_send && links_[i].link.sends);
    });
    if (!has_found && bound >= longest_sleep_ns) [[unlikely]]
      set_all_ready();
  }

  void settle(FloodTallies<T>& tallies) {
    tallies.tell_all([&](std::size_t i) {
      const FloodLinkState& state = states_[i].state;
      return FloodTally{false, state.sent_bytes, state.sent_messages, state.measured_first, state.measured_end};
    });
    for (std::size_t i = 0; i < links_.size(); ++i) advance(i);
    const std::vector<FloodTally> told = tallies.receive_all();
    // A byte stream is closed instead (probe/endpoint.hpp): what many flows have queued may take far longer than the
    // cell.
    if constexpr (!ByteStream<T>) take_the_rest(told);
    tallies.end_well();
  }

  void advance(std::size_t i) {
    if constexpr (!T::traits.is_reliable) {
      states_[i].advance(static_cast<std::uint32_t>(states_[i].state.sent_messages));
    }
  }

  /// Take what is still on its way. Over an unreliable path the last messages may be lost: then silence ends it.
  void take_the_rest(const std::vector<FloodTally>& told) {
    for (std::size_t i = 0; i < links_.size(); ++i) {
      states_[i].state.can_send = false;
      states_[i].state.can_receive = links_[i].link.receives;
    }
    const auto has_all = [&] {
      for (std::size_t i = 0; i < links_.size(); ++i) {
        if (links_[i].link.receives && !states_[i].has_all(told[i])) return false;
      }
      return true;
    };
    is_interface_full_ = false;
    std::uint64_t heard = Clock::now();
    for (;;) {
      const std::uint64_t now = Clock::now();
      const std::uint64_t came_before = came_;
      take_all();
      if (came_ != came_before) heard = now;
      if (has_all()) break;
      if (!T::traits.is_reliable && now - heard > silence_ns) break;
      if (now - heard > seconds_to_ns(reliable_bound_seconds)) {
        throw Failure(FailureCode::timeout, "nothing moved for 10 s: is the link up and are the peers alive?");
      }
      wait_for_more(now);
    }
    for (std::size_t i = 0; i < links_.size(); ++i) {
      if (links_[i].link.receives) states_[i].finish(told[i]);
    }
  }

  void wait_for_more(std::uint64_t now) {
    wait(now, now + longest_sleep_ns);
    for (FloodLink<T>& link : states_) link.state.can_send = false;
  }

  std::span<LinkOver<T>> links_;
  Task& task_;
  std::size_t message_bytes_;
  std::size_t quantum_;
  bool is_polling_;
  MessageBuffer out_;
  MessageBuffer in_;
  Readiness readiness_;
  std::vector<FloodLink<T>> states_;
  std::uint64_t came_ = 0;
  std::size_t first_ = 0;  // the link that pushes first
  bool is_interface_full_ = false;
};

template <Transport T>
struct FloodKind {
  using type = PolledFlood<T>;
};
template <PoolingTransport T>
struct FloodKind<T> {
  using type = PostedFlood<T>;
};

/// Over the links of this rank, at least one; their paths come from one device.
template <Transport T>
class Flood {
 public:
  Flood(std::span<LinkOver<T>> links, Task& task) : task_(task), flood_(links, task) {
    for (LinkOver<T>& link : links) link.path->set_bound(task.probe.reply_timeout_seconds);
  }

  Outcome run() {
    flood_.run();
    return flood_outcome(task_);
  }

 private:
  Task& task_;
  typename FloodKind<T>::type flood_;
};

}  // namespace fabricbench

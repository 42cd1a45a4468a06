// One message there and one back, many times: verified before the timing, then timed in a warm-up and a measurement.
// The first rank leads: it orders a batch over the control plane, times each round trip alone, applies the stopping
// rule (core/stopping.hpp) and orders the next; the second answers. Two kinds of rounds: over a reliable path every
// reply comes; over an unreliable one messages carry a header, replies may be missing, late or doubled, and every wait
// has a bound.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/failure.hpp"
#include "core/measurement.hpp"
#include "core/message_buffer.hpp"
#include "core/stopping.hpp"
#include "pattern/payload.hpp"
#include "pattern/round_orders.hpp"
#include "transport/transport.hpp"

namespace fabricbench {

/// What else happens at a round trip, beside its being timed: `before` it, outside the stamps, and with its number and
/// stamps after it, on either side; `departs` has the answer in hand, `answered` comes once it has been sent. Nothing
/// for a ping-pong.
struct NoHooks {
  /// Where an answer leaves from a buffer of its own: whether the message is copied there, as a check needs it.
  static constexpr bool answers_with_message = false;
  void before() {}
  void led(std::uint32_t, std::uint64_t, std::uint64_t) {}
  void arrived(std::uint32_t) {}
  void departs(std::uint32_t, std::span<std::byte>) {}
  void answered() {}
  double seconds_of(double round_trip) const { return round_trip; }
};

/// What a round trip is made of: whether the follower answers from a buffer that nothing is received into (osu_latency,
/// IMB PingPong) or with the message where it came to, and how many go in a row between two stamps.
struct RoundTrips {
  bool answers_own = false;
  std::size_t in_a_row = 1;
};

/// Whether a message is behind those of the order, `position` from its first: the leader has gone on, and told so
/// before.
inline bool is_behind(RoundOrder order, std::uint32_t position) {
  return position >= order.count && position < 1U << 31U;
}

/// Have the receive of the next message ready, where the transport can.
template <Transport T>
void expect(T& path, std::span<std::byte> message) {
  if constexpr (PrepostingTransport<T>) path.prepost(message);
}

/// Receive what was expected, into the same memory.
template <Transport T>
bool receive_expected(T& path, std::span<std::byte> message) {
  if constexpr (PrepostingTransport<T>) {
    return path.receive_preposted();
  } else {
    return path.receive(message);
  }
}

/// To be called when a pattern ends, however it does: what is still expected lies in one of its two buffers.
template <Transport T>
void expect_no_more(T& path, const MessageBuffer& one, const MessageBuffer& other) {
  if constexpr (PrepostingTransport<T>) {
    using Keepers = std::array<std::shared_ptr<const void>, 2>;
    path.release_preposted(std::make_shared<Keepers>(Keepers{one.keeper(), other.keeper()}));
  }
}

template <Transport T, class Hooks>
  requires(T::traits.is_reliable)
class ReliableRounds {
 public:
  ReliableRounds(T& path, Task& task, Hooks hooks = {}, RoundTrips trips = {})
      : path_(path),
        hooks_(hooks),
        trips_(trips),
        out_(task.allocate(task.probe.message_bytes)),
        in_(task.allocate(task.probe.message_bytes)) {
    path_.set_bound(task.probe.reply_timeout_seconds);
  }
  ~ReliableRounds() { expect_no_more(path_, in_, out_); }
  ReliableRounds(const ReliableRounds&) = delete;
  ReliableRounds& operator=(const ReliableRounds&) = delete;

  /// Time this many round trips, each alone, or so many times as many as go in a row. As many go first, untimed: the
  /// follower comes from its sleep.
  void lead(std::size_t count, Series& series, std::uint64_t /*deadline*/) {
    const std::span<const std::byte> out = out_.span();
    const std::span<std::byte> in = in_.span();
    const std::size_t in_a_row = trips_.in_a_row;
    for (std::size_t i = 0; i < in_a_row; ++i) {
      expect(path_, in);
      path_.send(out);
      receive_expected(path_, in);
    }
    ++number_;
    for (std::size_t i = 0; i < count; ++i) {
      hooks_.before();
      expect(path_, in);
      const std::uint64_t begin = Clock::now();
      path_.send(out);
      receive_expected(path_, in);
      for (std::size_t more = in_a_row; more > 1; --more) {
        expect(path_, in);
        path_.send(out);
        receive_expected(path_, in);
      }
      const std::uint64_t end = Clock::now();
      series.push(end - begin);
      hooks_.led(number_++, begin, end);
    }
    sent_ += count * in_a_row;
  }

  /// Send a known payload and compare what comes back, turned by AnswersTurned; true if it is that.
  std::optional<bool> lead_checked(std::uint64_t seed) {
    fill_payload(out_.span(), seed);
    expect(path_, in_.span());
    path_.send(out_.span());
    receive_expected(path_, in_.span());
    turn_payload(out_.span());
    return std::ranges::equal(out_.span(), in_.span());
  }

  RoundOrder order(std::size_t rounds) { return {0, static_cast<std::uint32_t>(rounds * trips_.in_a_row)}; }
  /// What the follower receives and sends at an order.
  static MessagesPassed followed(RoundOrder order) { return {.sent = order.count, .received = order.count}; }

  /// A receive that is posted while its answer's forerunner is sent needs a buffer of its own: they take turns. Where
  /// answers have one, all is received into the same.
  RoundOrder follow(RoundOrder order, const CellTeam& team) {
    const std::span<std::byte> own = out_.span();
    std::span<std::byte> message = in_.span();
    [[maybe_unused]] std::span<std::byte> next = trips_.answers_own ? message : own;
    const std::span<std::byte>& answer = trips_.answers_own ? own : message;
    expect(path_, message);
    for (std::uint32_t i = 0; i < order.count; ++i) {
      receive_expected(path_, message);
      hooks_.arrived(number_);
      if (PrepostingTransport<T> && i + 1 < order.count) expect(path_, next);
      hooks_.departs(number_++, answer);
      path_.send(answer);
      hooks_.answered();
      if constexpr (PrepostingTransport<T>) std::swap(message, next);
    }
    return team.receive<RoundOrder>(leader);
  }

  void start_counting() { sent_ = 0; }
  Counters counters() const { return {.sent = sent_}; }
  double seconds_of(double round_trip) const { return hooks_.seconds_of(round_trip); }

 private:
  T& path_;
  [[no_unique_address]] Hooks hooks_;
  RoundTrips trips_;
  MessageBuffer out_;
  MessageBuffer in_;
  std::uint32_t number_ = 0;
  std::uint64_t sent_ = 0;
};

template <Transport T, class Hooks>
  requires(!T::traits.is_reliable)
class CountedRounds {
 public:
  CountedRounds(T& path, Task& task, Hooks hooks = {}, RoundTrips trips = {})
      : path_(path),
        task_(task),
        hooks_(hooks),
        answers_own_(trips.answers_own),
        out_(task.allocate(task.probe.message_bytes)),
        in_(task.allocate(task.probe.message_bytes)) {
    path_.set_bound(task.team.member() == leader ? task.probe.reply_timeout_seconds : follower_bound_seconds);
    timeout_ = seconds_to_ns(task.probe.reply_timeout_seconds);
  }
  ~CountedRounds() { expect_no_more(path_, in_, out_); }
  CountedRounds(const CountedRounds&) = delete;
  CountedRounds& operator=(const CountedRounds&) = delete;

  /// Time this many round trips, each alone, or fewer: what is lost has no time, and past the deadline a loss ends the
  /// batch. One more goes first, untimed: the follower comes from its sleep.
  void lead(std::size_t count, Series& series, std::uint64_t deadline) {
    round_trip();
    for (std::size_t i = 0; i < count; ++i) {
      ++counters_.sent;
      hooks_.before();
      if (const auto trip = round_trip()) [[likely]] {
        series.push(trip->end - trip->begin);
        hooks_.led(task_.sequence - 1, trip->begin, trip->end);
        continue;
      }
      ++counters_.lost;
      if (Clock::now() > deadline) {
        task_.sequence += static_cast<std::uint32_t>(count - 1 - i);  // no later message is taken for one of this order
        break;
      }
    }
  }

  std::optional<bool> lead_checked(std::uint64_t seed) {
    const std::span<std::byte> payload = out_.span().subspan(sizeof(DatagramHeader));
    fill_payload(payload, seed);
    if (!round_trip()) return std::nullopt;
    turn_payload(payload);
    return std::ranges::equal(out_.span(), in_.span());
  }

  RoundOrder order(std::size_t messages) { return {task_.sequence, static_cast<std::uint32_t>(messages)}; }
  static MessagesPassed followed(RoundOrder order) { return {.sent = order.count, .received = order.count}; }

  /// Answer the messages of an order; the next order. What came before its order was read stays in hand for it. An
  /// answer from a buffer of its own has the header of what it answers.
  RoundOrder follow(RoundOrder order, const CellTeam& team) {
    const std::span<std::byte> message = in_.span();
    const std::span<std::byte> answer = answers_own_ ? out_.span() : message;
    for (bool has_come = std::exchange(is_in_hand_, false) || path_.receive(message);;
         has_come = path_.receive(message)) {
      if (has_come) [[likely]] {
        const DatagramHeader header = read_header(message);
        const std::uint32_t position = header.sequence - order.first;
        if (header.token == task_.token && position < order.count) [[likely]] {
          hooks_.arrived(header.sequence);
          write_header(answer, header);
          hooks_.departs(header.sequence, answer);
          path_.send(answer);
          hooks_.answered();
          if (position + 1 != order.count) [[likely]]
            continue;
          return finish(order, team.receive<RoundOrder>(leader));
        }
        if (header.token == task_.token && is_behind(order, position)) {
          is_in_hand_ = true;
          return finish(order, team.receive<RoundOrder>(leader));
        }
      }
      // Nothing, or a stranger's: the last message of the order may have been lost, and the leader be further on.
      if (const auto next = team.try_receive<RoundOrder>(leader)) return finish(order, *next);
    }
  }

  void start_counting() { counters_ = {}; }
  Counters counters() const { return counters_; }
  double seconds_of(double round_trip) const { return hooks_.seconds_of(round_trip); }

 private:
  // How soon a follower sees that the leader has given up on a lost message.
  static constexpr double follower_bound_seconds = 1e-3;
  static constexpr std::size_t remembered_losses = 64;

  RoundOrder finish(RoundOrder order, RoundOrder next) {
    task_.sequence = order.first + order.count;
    return next;
  }

  struct Trip {
    std::uint64_t begin;
    std::uint64_t end;
  };

  std::optional<Trip> round_trip() {
    const DatagramHeader expected{task_.token, task_.sequence++};
    write_header(out_.span(), expected);
    expect(path_, in_.span());
    const std::uint64_t begin = Clock::now();
    path_.send(out_.span());
    while (receive_expected(path_, in_.span())) {
      const std::uint64_t end = Clock::now();
      const DatagramHeader header = read_header(in_.span());
      if (end - begin > timeout_) [[unlikely]]
        break;  // too late, even if it is the reply
      if (header == expected) [[likely]]
        return Trip{begin, end};
      note_unexpected(header);
      expect(path_, in_.span());
    }
    lost_[expected.sequence % remembered_losses] = expected.sequence;
    return std::nullopt;
  }

  /// A reply to a message that was given up is late; one to a message that was answered is doubled.
  void note_unexpected(DatagramHeader header) {
    if (header.token != task_.token) return;
    const bool is_late = lost_[header.sequence % remembered_losses] == header.sequence;
    ++(is_late ? counters_.reordered : counters_.duplicated);
  }

  T& path_;
  Task& task_;
  [[no_unique_address]] Hooks hooks_;
  bool answers_own_;
  MessageBuffer out_;
  MessageBuffer in_;
  std::uint64_t timeout_ = 0;
  Counters counters_;
  bool is_in_hand_ = false;
  std::array<std::uint32_t, remembered_losses> lost_{};
};

/// Over what does not send messages, pattern/one_sided.hpp and written.hpp say what they are.
template <class T, class Hooks>
struct RoundsOver;
template <Transport T, class Hooks>
  requires(!T::traits.is_reliable)
struct RoundsOver<T, Hooks> {
  using type = CountedRounds<T, Hooks>;
};
template <Transport T, class Hooks>
  requires(T::traits.is_reliable)
struct RoundsOver<T, Hooks> {
  using type = ReliableRounds<T, Hooks>;
};
template <PeerTransport T, class Hooks = NoHooks>
using Rounds = typename RoundsOver<T, Hooks>::type;

/// The follower of a verification turns what it answers.
template <PeerTransport T>
struct AnswersTurned : NoHooks {
  static constexpr bool answers_with_message = true;
  void departs(std::uint32_t, std::span<std::byte> message) {
    turn_payload(message.subspan(T::traits.is_reliable ? 0 : sizeof(DatagramHeader)));
  }
};

/// The untimed exchange before the timing: messages with a known payload go there and come back, and the leader
/// compares.
template <PeerTransport T>
class Verification {
 public:
  Verification(T& path, Task& task) : task_(task), rounds_(path, task) {}

  /// Count what came back the same and what did not. Failures: nothing came back, or nothing as it was sent.
  void run() {
    if (task_.team.member() == leader) {
      lead();
      judge();
    } else {
      follow_orders(rounds_, task_);
    }
  }

 private:
  static constexpr std::size_t most_silent_tries = T::traits.is_reliable ? 1 : first_tries;

  void lead() {
    const std::size_t wanted = task_.probe.verify_messages;
    task_.team.send(follower, rounds_.order(wanted));
    const FollowerRelease release(task_.team);
    while (tries_ < wanted && !is_silent()) try_once();
    // What was lost at first, one order each: who follows an order waits for its last message, and most cells need no
    // more.
    while (tries_ < wanted + lost_first_ && !is_silent()) {
      task_.team.send(follower, rounds_.order(1));
      try_once();
    }
  }

  bool is_silent() const { return lost_first_ == most_silent_tries; }

  /// Each try has a number of its own, so that a late answer to one is not taken for that to the next.
  void try_once() {
    const auto is_same = rounds_.lead_checked(task_.token + tries_++);
    if (!is_same && task_.counters.verified == 0) ++lost_first_;
    if (is_same) ++task_.counters.verified;
    if (is_same && !*is_same) ++task_.counters.corrupted;
  }

  void judge() const {
    if (task_.counters.verified == 0) {
      throw Failure(FailureCode::timeout, "no answer to " + std::to_string(tries_) + " messages, each within " +
                                              std::to_string(task_.probe.reply_timeout_seconds) +
                                              " s: is something filtering this protocol on the way?");
    }
    if (task_.counters.corrupted == task_.counters.verified) {
      throw Failure(FailureCode::corrupted, "all " + std::to_string(task_.counters.verified) +
                                                " verified messages came back with another payload: nothing was timed");
    }
  }

  Task& task_;
  Rounds<T, AnswersTurned<T>> rounds_;
  std::size_t tries_ = 0;
  std::size_t lost_first_ = 0;
};

}  // namespace fabricbench

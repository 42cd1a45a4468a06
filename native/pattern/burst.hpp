// Pattern burst: several messages at once, then one answer. Against the round trip of a single message it shows what a
// switch and the hosts on either side do at the same time: the messages behind the first cost what the slowest stage
// takes for one, not what all stages take together.
#pragma once

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "core/parameters.hpp"
#include "pattern/flow.hpp"
#include "pattern/round_trip.hpp"
#include "pattern/staged_rounds.hpp"

namespace fabricbench {

/// When a burst began and when its answer had come, ns.
struct BurstTime {
  std::uint64_t begin;
  std::uint64_t end;
};

template <Transport T, class Hooks>
  requires(T::traits.is_reliable)
class ReliableBursts {
 public:
  ReliableBursts(T& path, Task& task, std::size_t messages, Hooks hooks)
      : path_(path),
        hooks_(hooks),
        messages_(messages),
        out_(task.allocate(task.probe.message_bytes)),
        in_(task.allocate(task.probe.message_bytes)) {
    path_.set_bound(task.probe.reply_timeout_seconds);
  }
  ~ReliableBursts() { expect_no_more(path_, in_, out_); }
  ReliableBursts(const ReliableBursts&) = delete;
  ReliableBursts& operator=(const ReliableBursts&) = delete;

  void lead(std::size_t count, Series& series, std::uint64_t /*deadline*/) {
    burst();
    ++number_;
    for (std::size_t i = 0; i < count; ++i) {
      hooks_.before();
      const BurstTime time = burst();
      series.push(time.end - time.begin);
      hooks_.led(number_++, time.begin, time.end);
    }
    sent_ += count * messages_;
  }

  RoundOrder order(std::size_t bursts) { return {0, static_cast<std::uint32_t>(bursts)}; }
  MessagesPassed followed(RoundOrder order) const { return {.sent = order.count, .received = order.count * messages_}; }

  RoundOrder follow(RoundOrder order, const CellTeam& team) {
    const std::span<std::byte> message = in_.span();
    for (std::uint32_t i = 0; i < order.count; ++i) {
      for (std::size_t k = 0; k < messages_; ++k) path_.receive(message);
      hooks_.arrived(number_);
      hooks_.departs(number_++, message);
      path_.send(message);
      hooks_.answered();
    }
    return team.receive<RoundOrder>(leader);
  }

  void start_counting() { sent_ = 0; }
  Counters counters() const { return {.sent = sent_}; }
  double seconds_of(double burst) const { return hooks_.seconds_of(burst); }

 private:
  BurstTime burst() {
    const std::span<const std::byte> out = out_.span();
    expect(path_, in_.span());
    const std::uint64_t begin = Clock::now();
    for (std::size_t k = 0; k < messages_; ++k) path_.send(out);
    receive_expected(path_, in_.span());
    return {begin, Clock::now()};
  }

  T& path_;
  [[no_unique_address]] Hooks hooks_;
  std::size_t messages_;
  MessageBuffer out_;
  MessageBuffer in_;
  std::uint32_t number_ = 0;
  std::uint64_t sent_ = 0;
};

/// Where messages are refused that come too early, the follower has the receives of the next burst posted before the
/// leader has the answer to this one, and the leader's messages wait for those of the first.
template <GrantingTransport T>
class PostedBursts {
 public:
  PostedBursts(T& path, Task& task, std::size_t messages)
      : path_(path), messages_(messages), answer_(task.allocate(task.probe.message_bytes)) {
    path_.set_bound(task.probe.reply_timeout_seconds);
    if (task.team.member() == leader) {
      out_.emplace(path, task.probe, task.allocate);
    } else {
      in_.emplace(path, task.probe, task.allocate);
    }
  }
  ~PostedBursts() { expect_no_more(path_, answer_, answer_); }
  PostedBursts(const PostedBursts&) = delete;
  PostedBursts& operator=(const PostedBursts&) = delete;

  void lead(std::size_t count, Series& series, std::uint64_t /*deadline*/) {
    burst();
    for (std::size_t i = 0; i < count; ++i) series.push(burst());
    sent_ += count * messages_;
  }

  RoundOrder order(std::size_t bursts) { return {0, static_cast<std::uint32_t>(bursts)}; }
  MessagesPassed followed(RoundOrder order) const { return {.sent = order.count, .received = order.count * messages_}; }

  RoundOrder follow(RoundOrder order, const CellTeam& team) {
    for (std::uint32_t i = 0; i < order.count; ++i) {
      for (std::size_t k = 0; k < messages_; ++k) in_->receive();
      path_.send(answer_.span());
    }
    return team.receive<RoundOrder>(leader);
  }

  void start_counting() { sent_ = 0; }
  Counters counters() const { return {.sent = sent_}; }
  double seconds_of(double burst) const { return burst; }

 private:
  std::uint64_t burst() {
    expect(path_, answer_.span());
    const std::uint64_t begin = Clock::now();
    for (std::size_t k = 0; k < messages_; ++k) out_->send_usual();
    receive_expected(path_, answer_.span());
    const std::uint64_t end = Clock::now();
    out_->finish();
    return end - begin;
  }

  T& path_;
  std::size_t messages_;
  MessageBuffer answer_;
  std::optional<Outgoing<T>> out_;
  std::optional<Incoming<T>> in_;
  std::uint64_t sent_ = 0;
};

/// Over an unreliable path a burst that is not complete has no answer: the first rank gives it up, and its time is
/// none.
template <Transport T, class Hooks>
  requires(!T::traits.is_reliable)
class CountedBursts {
 public:
  CountedBursts(T& path, Task& task, std::size_t messages, Hooks hooks)
      : path_(path),
        task_(task),
        hooks_(hooks),
        messages_(static_cast<std::uint32_t>(messages)),
        out_(task.allocate(task.probe.message_bytes)),
        in_(task.allocate(task.probe.message_bytes)),
        came_in_(messages, none) {
    path_.set_bound(task.team.member() == leader ? task.probe.reply_timeout_seconds : follower_bound_seconds);
    timeout_ = seconds_to_ns(task.probe.reply_timeout_seconds);
  }
  ~CountedBursts() { expect_no_more(path_, in_, out_); }
  CountedBursts(const CountedBursts&) = delete;
  CountedBursts& operator=(const CountedBursts&) = delete;

  void lead(std::size_t count, Series& series, std::uint64_t deadline) {
    burst();
    for (std::size_t i = 0; i < count; ++i) {
      counters_.sent += messages_;
      hooks_.before();
      if (const auto time = burst()) [[likely]] {
        series.push(time->end - time->begin);
        hooks_.led(task_.sequence - 1, time->begin, time->end);
        continue;
      }
      ++counters_.lost;  // one at least
      if (Clock::now() > deadline) {
        task_.sequence += static_cast<std::uint32_t>(count - 1 - i) * messages_;  // as in CountedRounds
        break;
      }
    }
  }

  RoundOrder order(std::size_t bursts) { return {task_.sequence, static_cast<std::uint32_t>(bursts) * messages_}; }
  MessagesPassed followed(RoundOrder order) const { return {.sent = order.count / messages_, .received = order.count}; }

  RoundOrder follow(RoundOrder order, const CellTeam& team) {
    const std::span<std::byte> message = in_.span();
    std::ranges::fill(came_in_, none);
    std::uint32_t newest = none;
    std::uint32_t come = 0;
    for (bool has_come = std::exchange(is_in_hand_, false) || path_.receive(message);;
         has_come = path_.receive(message)) {
      if (has_come) [[likely]] {
        const DatagramHeader header = read_header(message);
        const std::uint32_t position = header.sequence - order.first;
        if (header.token == task_.token && position < order.count) [[likely]] {
          const std::uint32_t burst = position / messages_;
          if (burst != newest || !is_new(position)) [[unlikely]] {
            if (burst <= newest && newest != none) continue;  // late, or a double: it must not stand in for a lost one
            newest = burst;
            come = 0;
            is_new(position);
          }
          if (++come < messages_) continue;
          // The answer carries the number of the burst's last message, whichever came last.
          const std::uint32_t last = order.first + (burst + 1) * messages_ - 1;
          hooks_.arrived(last);
          write_header(message, {task_.token, last});
          hooks_.departs(last, message);
          path_.send(message);
          hooks_.answered();
          if ((burst + 1) * messages_ != order.count) [[likely]]
            continue;
          return finish(order, team.receive<RoundOrder>(leader));
        }
        if (header.token == task_.token && is_behind(order, position)) {
          is_in_hand_ = true;
          return finish(order, team.receive<RoundOrder>(leader));
        }
      }
      if (const auto next = team.try_receive<RoundOrder>(leader)) return finish(order, *next);
    }
  }

  void start_counting() { counters_ = {}; }
  Counters counters() const { return counters_; }
  double seconds_of(double burst) const { return hooks_.seconds_of(burst); }

 private:
  static constexpr double follower_bound_seconds = 1e-3;
  static constexpr std::uint32_t none = 0xffffffff;

  RoundOrder finish(RoundOrder order, RoundOrder next) {
    task_.sequence = order.first + order.count;
    return next;
  }

  std::optional<BurstTime> burst() {
    const std::span<std::byte> out = out_.span();
    expect(path_, in_.span());
    const std::uint64_t begin = Clock::now();
    for (std::uint32_t k = 0; k < messages_; ++k) {
      write_header(out, {task_.token, task_.sequence++});
      path_.send(out);
    }
    while (receive_expected(path_, in_.span())) {
      const std::uint64_t end = Clock::now();
      const DatagramHeader header = read_header(in_.span());
      if (end - begin > timeout_) [[unlikely]]
        break;  // too late, even if it is the answer
      if (header == DatagramHeader{task_.token, task_.sequence - 1}) [[likely]]
        return BurstTime{begin, end};
      if (header.token == task_.token) ++counters_.reordered;
      expect(path_, in_.span());
    }
    return std::nullopt;
  }

  /// Note a message of the newest burst; false where it had come before.
  bool is_new(std::uint32_t position) {
    std::uint32_t& place = came_in_[position % messages_];
    return std::exchange(place, position) != position;
  }

  T& path_;
  Task& task_;
  [[no_unique_address]] Hooks hooks_;
  std::uint32_t messages_;
  MessageBuffer out_;
  MessageBuffer in_;
  std::vector<std::uint32_t> came_in_;  // the last message that came in each place of a burst
  std::uint64_t timeout_ = 0;
  Counters counters_;
  bool is_in_hand_ = false;
};

/// Over what does not send messages, pattern/one_sided.hpp says what they are.
template <class T>
struct BurstsOver;
template <Transport T>
  requires(!T::traits.is_reliable)
struct BurstsOver<T> {
  using type = CountedBursts<T, HooksOver<T>>;
};
template <Transport T>
  requires(T::traits.is_reliable && !GrantingTransport<T>)
struct BurstsOver<T> {
  using type = ReliableBursts<T, HooksOver<T>>;
};
template <GrantingTransport T>
  requires(T::traits.is_reliable)
struct BurstsOver<T> {
  using type = PostedBursts<T>;
};

template <PeerTransport T>
class BurstOver {
 public:
  BurstOver(T& path, Task& task)
      : path_(path), task_(task), messages_(messages_of(task.probe)), bursts_(bursts_over(path, task, messages_)) {}

  Outcome run() {
    Outcome outcome = run_rounds(bursts_, task_);
    outcome.bytes_per_sample = (messages_ + (OneSidedTransport<T> ? 0 : 1)) * task_.probe.message_bytes;
    if constexpr (StagedTransport<T>) task_.findings.stages.push_back(stages_of(path_, task_));
    return outcome;
  }

 private:
  using Bursts = typename BurstsOver<T>::type;
  static Bursts bursts_over(T& path, Task& task, std::size_t messages) {
    if constexpr (OneSidedTransport<T> || GrantingTransport<T>) {
      return {path, task, messages};
    } else {
      return {path, task, messages, with_stages(path, task)};
    }
  }
  /// Messages are counted by numbers of 32 bits, of which half are ahead of any: more than that are refused.
  static std::size_t messages_of(const PlanProbe& probe) {
    constexpr std::size_t half_of_all = std::size_t{1} << 31U;
    const std::size_t messages = whole_parameter(probe, "messages");
    const std::size_t bursts = std::max(probe.stopping.maximum_samples, probe.warmup_samples) + 1;
    if (bursts < half_of_all / messages) return messages;
    throw Failure(FailureCode::unsupported, std::to_string(bursts) + " bursts of " + std::to_string(messages) +
                                                " messages are more than can be counted: take fewer samples, " +
                                                std::to_string(half_of_all / messages - 2) + " at most");
  }

  T& path_;
  Task& task_;
  std::size_t messages_;
  Bursts bursts_;
};

struct Burst {
  static constexpr std::size_t timing_member = leader;

  template <class T>
  static constexpr bool runs_over = Transport<T> || OneSidedTransport<T>;

  template <class T>
  using Over = BurstOver<T>;
};

}  // namespace fabricbench

// Patterns over paths on which one rank works in memory of the other, which takes no part (OneSidedTransport): reads of
// it, or additions to a word there. The other exposes the memory, waits over the control plane, and is idle meanwhile.
//
// What is read is a known payload. What an addition gives is how many there were before it, on the same word. So every
// result can be checked: those of the verification all are, and of the timing the last of each batch.
//
// A ping-pong is one operation; a burst is several at once, over when the last is complete; a stream keeps as many
// under way as the path's depth says; so does a flood on each of its links. What needs the other rank to notice what
// comes, its stamps or its turn, has no meaning here (refuse_one_sided).
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "pattern/burst.hpp"
#include "pattern/stream.hpp"

namespace fabricbench {

/// Where a member finds the memory of another that it works in, one for each link between them.
struct Exposures {
  static constexpr MessageType message_type = MessageType::exposures;
  std::vector<Exposed> all;

  std::string pack() const { return pack_values(all); }
  static Exposures unpack(std::string_view payload) { return {unpack_values<Exposed>(payload)}; }
};

/// Throw the Failure of a pattern that is not one over such paths.
[[noreturn]] inline void refuse_one_sided(Pattern pattern) {
  throw Failure(FailureCode::unsupported,
                std::string(name_of(pattern)) +
                    " does not go through this door: each rank's part in it is to notice what comes from others, and "
                    "nobody notices what another reads or changes in its memory; take pingpong, stream or a pattern "
                    "that fills its channels, or another door");
}

/// Have the memory hold what the other end is to find.
template <OneSidedTransport T>
void fill_exposed(std::span<std::byte> memory, std::uint64_t seed) {
  if constexpr (T::adds) {
    for (std::size_t i = 0; i + sizeof seed <= memory.size(); i += sizeof seed) {
      std::memcpy(&memory[i], &seed, sizeof seed);
    }
  } else {
    fill_payload(memory, seed);
  }
}

/// Whether that is what an operation gave, `before` others having been done there.
template <OneSidedTransport T>
bool is_exposed(std::span<const std::byte> result, std::uint64_t seed, std::uint64_t before) {
  if constexpr (T::adds) {
    std::uint64_t value = 0;
    std::memcpy(&value, result.data(), sizeof value);
    return value == seed + before;
  } else {
    return is_payload(result, seed);
  }
}

/// The two ends of a path of two ranks: the leader works, the follower exposes.
template <OneSidedTransport T>
class OneSidedEnds {
 public:
  OneSidedEnds(T& path, Task& task) : path_(path), task_(task), memory_(task.allocate(task.probe.message_bytes)) {
    path_.set_bound(task.probe.reply_timeout_seconds);
    clear();
  }
  ~OneSidedEnds() { path_.release(memory_.keeper()); }
  OneSidedEnds(const OneSidedEnds&) = delete;
  OneSidedEnds& operator=(const OneSidedEnds&) = delete;

  void expose_to(std::size_t member) {
    fill_exposed<T>(memory_.span(), task_.token);
    task_.team.send(member, Exposures{{path_.expose(memory_.span())}});
  }
  void aim_at(std::size_t member) { path_.aim_at(task_.team.receive<Exposures>(member).all.at(0)); }

  std::span<std::byte> span() { return memory_.span(); }
  /// So that what a check finds has come.
  void clear() { std::ranges::fill(memory_.span(), std::byte{0}); }
  /// Whether the last of so many operations gave what it should.
  bool is_right(std::uint64_t done) { return is_exposed<T>(memory_.span(), task_.token, done - 1); }

 private:
  T& path_;
  Task& task_;
  MessageBuffer memory_;
};

/// Operations one after the other, or `at_once` of them together, each time timed alone.
template <OneSidedTransport T, class Hooks>
class OneSidedRounds {
 public:
  OneSidedRounds(T& path, Task& task, Hooks hooks = {}, std::size_t at_once = 1)
      : path_(path), hooks_(hooks), at_once_(at_once), ends_(path, task) {}

  void lead(std::size_t count, Series& series, std::uint64_t /*deadline*/) {
    aim();
    const std::span<std::byte> memory = ends_.span();
    operate(memory);
    for (std::size_t i = 0; i < count; ++i) {
      hooks_.before();
      const std::uint64_t begin = Clock::now();
      operate(memory);
      const std::uint64_t end = Clock::now();
      series.push(end - begin);
      hooks_.led(number_++, begin, end);
    }
    ends_.clear();  // what the others brought is there already: one more tells
    operate(memory);
    done_ += (count + 2) * at_once_;
    counters_.sent += count * at_once_;
    ++counters_.verified;
    counters_.corrupted += ends_.is_right(done_) ? 0 : 1;
  }

  std::optional<bool> lead_checked(std::uint64_t /*seed*/) {
    aim();
    ends_.clear();
    operate(ends_.span());
    done_ += at_once_;
    return ends_.is_right(done_);
  }

  RoundOrder order(std::size_t rounds) { return {0, static_cast<std::uint32_t>(rounds)}; }

  RoundOrder follow(RoundOrder /*order*/, const CellTeam& team) {
    if (!std::exchange(is_exposed_, true)) ends_.expose_to(leader);
    return team.receive<RoundOrder>(leader);
  }

  void start_counting() { counters_ = {}; }
  Counters counters() const { return counters_; }
  double seconds_of(double round) const { return hooks_.seconds_of(round); }

 private:
  void aim() {
    if (!std::exchange(is_exposed_, true)) ends_.aim_at(follower);
  }
  void operate(std::span<std::byte> memory) {
    std::uint64_t last = 0;
    for (std::size_t k = 0; k < at_once_; ++k) last = path_.operate(memory);
    path_.wait_for(last);
  }

  T& path_;
  [[no_unique_address]] Hooks hooks_;
  std::size_t at_once_;
  OneSidedEnds<T> ends_;
  Counters counters_;
  std::uint64_t done_ = 0;
  std::uint32_t number_ = 0;
  bool is_exposed_ = false;
};

template <OneSidedTransport T, class Hooks>
struct RoundsOver<T, Hooks> {
  using type = OneSidedRounds<T, Hooks>;
};

template <OneSidedTransport T>
class OneSidedBursts : public OneSidedRounds<T, NoHooks> {
 public:
  OneSidedBursts(T& path, Task& task, std::size_t messages) : OneSidedRounds<T, NoHooks>(path, task, {}, messages) {}
};
template <OneSidedTransport T>
struct BurstsOver<T> {
  using type = OneSidedBursts<T>;
};

/// The sender of a stream exposes what the receiver fetches until it has enough.
template <OneSidedTransport T>
class StreamSender<T> {
 public:
  StreamSender(T& path, Task& task) : task_(task), ends_(path, task) {}

  void run() {
    ends_.expose_to(stream_receiver);
    task_.team.template receive<StreamEnd>(stream_receiver);
  }

 private:
  Task& task_;
  OneSidedEnds<T> ends_;
};

template <OneSidedTransport T>
class StreamReceiver<T> {
 public:
  StreamReceiver(T& path, Task& task) : path_(path), task_(task), ends_(path, task), under_way_(path.depth()) {}

  Outcome run() {
    const std::size_t window = task_.probe.messages_per_sample;
    ends_.aim_at(stream_sender);
    for (std::size_t i = 1; i < under_way_; ++i) begin_next();
    take_next();
    WindowLog log(task_);
    bool has_enough = false;
    for (std::uint64_t begin = Clock::now(); !has_enough;) {
      for (std::size_t i = 0; i < window; ++i) take_next();
      const std::uint64_t end = Clock::now();
      has_enough = log.add(end, end - begin, static_cast<std::uint32_t>(window));
      begin = end;
    }
    path_.wait_for(newest_);
    ends_.clear();  // what the others brought is there already: one more tells
    begin_next();
    path_.wait_for(newest_);
    ++task_.counters.verified;
    task_.counters.corrupted += ends_.is_right(begun_) ? 0 : 1;
    task_.team.send(stream_sender, StreamEnd{});
    task_.counters.sent += task_.samples.measured.size() * window;
    return log.outcome();
  }

 private:
  void begin_next() {
    newest_ = path_.operate(ends_.span());
    ++begun_;
  }
  /// Begin one more, and wait for the oldest.
  void take_next() {
    begin_next();
    path_.wait_for(newest_ - under_way_ + 1);
  }

  T& path_;
  Task& task_;
  OneSidedEnds<T> ends_;
  std::size_t under_way_;
  std::uint64_t newest_ = 0;
  std::uint64_t begun_ = 0;
};

}  // namespace fabricbench

// Patterns over paths on which a rank writes into memory of the other and does nothing else (WritingTransport): what
// perftest measures as ib_write_lat and ib_write_bw.
//
// A ping-pong is a write there and one back, each from a buffer of its own into the one that the other end exposes; the
// last byte of a message counts the writes, and who waits polls it. A stream keeps as many writes under way as the
// path's depth says, all into one place. Nobody at the other end could tell when a message of it has come, so who
// writes keeps the time: a write is complete when the other's adapter has acknowledged it.
#pragma once

#include <algorithm>
#include <string>
#include <utility>

#include "pattern/one_sided.hpp"

namespace fabricbench {

/// Throw the Failure of a pattern that is not one over such paths.
[[noreturn]] inline void refuse_written(Pattern pattern) {
  throw Failure(
      FailureCode::unsupported,
      std::string(name_of(pattern)) +
          " does not go through this door: nobody is told of what is written; take pingpong, paced or stream, "
          "or another door");
}

/// Where this rank writes from, and what the other end writes into.
template <WritingTransport T>
class WrittenEnds {
 public:
  WrittenEnds(T& path, Task& task)
      : path_(path), task_(task), out_(task.allocate(task.probe.message_bytes)), in_(task.allocate(out_.size())) {
    path_.set_bound(task.probe.reply_timeout_seconds);
  }
  ~WrittenEnds() {
    path_.release(out_.keeper());
    path_.release(in_.keeper());
  }
  WrittenEnds(const WrittenEnds&) = delete;
  WrittenEnds& operator=(const WrittenEnds&) = delete;

  /// Before the first write: tell the other end where it writes to, and learn the same. Both call it.
  void meet_once(std::size_t peer) {
    if (std::exchange(have_met_, true)) return;
    task_.team.send(peer, Exposures{{path_.expose(in_.span())}});
    path_.aim_at(task_.team.receive<Exposures>(peer).all.at(0));
  }

  /// Write the next message, and wait until it is acknowledged.
  void write() {
    out_.span().back() = static_cast<std::byte>(++written_);
    path_.wait_for(path_.operate(out_.span()));
  }
  void wait_for_next() { path_.wait_for_byte(in_.span().back(), static_cast<std::byte>(++came_)); }

  std::span<std::byte> out() { return out_.span(); }
  std::span<std::byte> in() { return in_.span(); }
  /// All but the byte that counts.
  std::span<std::byte> payload_out() { return out_.span().first(out_.size() - 1); }
  std::span<std::byte> payload_in() { return in_.span().first(in_.size() - 1); }

 private:
  T& path_;
  Task& task_;
  MessageBuffer out_;
  MessageBuffer in_;
  unsigned written_ = 0;
  unsigned came_ = 0;
  bool have_met_ = false;
};

template <WritingTransport T, class Hooks>
class WrittenRounds {
 public:
  WrittenRounds(T& path, Task& task, Hooks hooks = {}, RoundTrips trips = {})
      : hooks_(hooks), in_a_row_(trips.in_a_row), ends_(path, task) {}

  void lead(std::size_t count, Series& series, std::uint64_t /*deadline*/) {
    ends_.meet_once(follower);
    const std::size_t in_a_row = in_a_row_;
    for (std::size_t i = 0; i < in_a_row; ++i) round_trip();
    for (std::size_t i = 0; i < count; ++i) {
      hooks_.before();
      const std::uint64_t begin = Clock::now();
      round_trip();
      for (std::size_t more = in_a_row; more > 1; --more) round_trip();
      const std::uint64_t end = Clock::now();
      series.push(end - begin);
      hooks_.led(number_++, begin, end);
    }
    sent_ += count * in_a_row;
  }

  std::optional<bool> lead_checked(std::uint64_t seed) {
    ends_.meet_once(follower);
    fill_payload(ends_.payload_out(), seed);
    round_trip();
    turn_payload(ends_.payload_out());
    return std::ranges::equal(ends_.payload_out(), ends_.payload_in());
  }

  RoundOrder order(std::size_t rounds) { return {0, static_cast<std::uint32_t>(rounds * in_a_row_)}; }

  RoundOrder follow(RoundOrder order, const CellTeam& team) {
    ends_.meet_once(leader);
    for (std::uint32_t i = 0; i < order.count; ++i) {
      ends_.wait_for_next();
      hooks_.arrived(number_);
      if constexpr (Hooks::answers_with_message) std::ranges::copy(ends_.in(), ends_.out().begin());
      hooks_.departs(number_++, ends_.payload_out());
      ends_.write();
    }
    return team.receive<RoundOrder>(leader);
  }

  void start_counting() { sent_ = 0; }
  Counters counters() const { return {.sent = sent_}; }
  double seconds_of(double round_trip) const { return hooks_.seconds_of(round_trip); }

 private:
  void round_trip() {
    ends_.write();
    ends_.wait_for_next();
  }

  [[no_unique_address]] Hooks hooks_;
  std::size_t in_a_row_;
  WrittenEnds<T> ends_;
  std::uint32_t number_ = 0;
  std::uint64_t sent_ = 0;
};

template <WritingTransport T, class Hooks>
struct RoundsOver<T, Hooks> {
  using type = WrittenRounds<T, Hooks>;
};

/// Writes until there are enough, and keeps the time.
template <WritingTransport T>
class StreamSender<T> {
 public:
  StreamSender(T& path, Task& task) : path_(path), task_(task), ends_(path, task), under_way_(path.depth()) {}

  Outcome run() {
    const std::size_t window = task_.probe.messages_per_sample;
    ends_.meet_once(stream_receiver);
    fill_payload(ends_.out(), task_.token);
    for (std::size_t i = 1; i < under_way_; ++i) begin_next();
    complete_next();
    WindowLog log(task_);
    bool has_enough = false;
    for (std::uint64_t begin = Clock::now(); !has_enough;) {
      for (std::size_t i = 0; i < window; ++i) complete_next();
      const std::uint64_t end = Clock::now();
      has_enough = log.add(end, end - begin, static_cast<std::uint32_t>(window));
      begin = end;
    }
    path_.wait_for(path_.operate(ends_.out()));
    task_.team.send(stream_receiver, StreamEnd{});
    task_.counters.sent += task_.samples.measured.size() * window;
    return log.outcome();
  }

 private:
  /// Of those under way some ask for a completion (`moderation`), so that the oldest has one to wait for.
  void begin_next() { newest_ = path_.operate(ends_.out(), false); }
  /// Begin one more, and wait for the oldest.
  void complete_next() {
    begin_next();
    path_.wait_for(newest_ - under_way_ + 1);
  }

  T& path_;
  Task& task_;
  WrittenEnds<T> ends_;
  std::size_t under_way_;
  std::uint64_t newest_ = 0;
};

/// Is written into, and looks at the end what has come.
template <WritingTransport T>
class StreamReceiver<T> {
 public:
  StreamReceiver(T& path, Task& task) : task_(task), ends_(path, task) {}

  Outcome run() {
    ends_.meet_once(stream_sender);
    task_.team.template receive<StreamEnd>(stream_sender);
    ++task_.counters.verified;
    task_.counters.corrupted += is_payload(ends_.in(), task_.token) ? 0 : 1;
    return {};
  }

 private:
  Task& task_;
  WrittenEnds<T> ends_;
};

}  // namespace fabricbench

// Pattern request: a byte asks, a message answers, as a remote read does. Against a ping-pong of the same size, which
// sends the message both ways, it shows what the answer alone costs.
//
// This is native/pattern/request.hpp, with a line in the class Pattern of src/fabricbench/patterns.py:
//
//     REQUEST = _pair("request", Metric.OPERATION_TIME, "a message for a byte", layers=RELIABLE, messages_there=0)
#pragma once

#include "pattern/round_trip.hpp"

namespace fabricbench {

/// What lead_phases() and follow_orders() ask of either rank.
template <Transport T>
class Requests {
 public:
  Requests(T& path, Task& task)
      : path_(path), request_(task.allocate(1)), answer_(task.allocate(task.probe.message_bytes)) {
    path_.set_bound(task.probe.reply_timeout_seconds);
  }

  /// One more goes first, untimed: the follower comes from its sleep.
  void lead(std::size_t count, Series& series, std::uint64_t /*deadline*/) {
    ask();
    for (std::size_t i = 0; i < count; ++i) series.push(ask());
    sent_ += count;
  }
  RoundOrder order(std::size_t requests) { return {0, static_cast<std::uint32_t>(requests)}; }
  RoundOrder follow(RoundOrder order, const CellTeam& team) {
    for (std::uint32_t i = 0; i < order.count; ++i) {
      path_.receive(request_.span());
      path_.send(answer_.span());
    }
    return team.receive<RoundOrder>(leader);
  }

  void start_counting() { sent_ = 0; }
  Counters counters() const { return {.sent = sent_}; }
  double seconds_of(double request) const { return request; }

 private:
  std::uint64_t ask() {
    const std::uint64_t begin = Clock::now();
    path_.send(request_.span());
    path_.receive(answer_.span());
    return Clock::now() - begin;
  }

  T& path_;
  MessageBuffer request_;
  MessageBuffer answer_;
  std::uint64_t sent_ = 0;
};

template <Transport T>
class RequestOver {
 public:
  RequestOver(T& path, Task& task) : task_(task), requests_(path, task) {}

  Outcome run() {
    Outcome outcome = run_rounds(requests_, task_);
    outcome.bytes_per_sample = 1 + task_.probe.message_bytes;
    return outcome;
  }

 private:
  Task& task_;
  Requests<T> requests_;
};

struct Request {
  static constexpr std::size_t timing_member = leader;

  template <class T>
  static constexpr bool runs_over = requires { requires Transport<T> && T::traits.is_reliable; };

  template <class T>
  using Over = RequestOver<T>;
};

}  // namespace fabricbench

// Pattern pingpong: a message there and one back, each round trip timed alone by the first rank. The rounds themselves,
// and how their number is found, are pattern/round_trip.hpp's, which other patterns share.
#pragma once

#include "pattern/local_batches.hpp"
#include "pattern/round_trip.hpp"

namespace fabricbench {

template <class Clock, class T>
class PingpongOver;

template <class Clock, PeerTransport T>
class PingpongOver<Clock, T> {
 public:
  PingpongOver(T& path, Task& task) : task_(task), rounds_(path, task) {}

  Outcome run() {
    Outcome outcome = run_rounds<Clock>(rounds_, task_);
    outcome.bytes_per_sample = (OneSidedTransport<T> ? 1 : 2) * task_.probe.message_bytes;
    return outcome;
  }

 private:
  Task& task_;
  Rounds<Clock, T> rounds_;
};

template <class Clock, LocalTransport T>
class PingpongOver<Clock, T> {
 public:
  PingpongOver(T& local, Task& task) : local_(local), task_(task) {}

  Outcome run() {
    return take_local_batches<Clock>(task_, local_.bytes_there_and_back(),
                                     [this](std::size_t operations) { local_.there_and_back(operations); });
  }

 private:
  T& local_;
  Task& task_;
};

struct Pingpong {
  static constexpr std::size_t timing_member = leader;

  template <class T>
  static constexpr bool runs_over = PeerTransport<T> || LocalTransport<T>;

  template <class Clock, class T>
  using Over = PingpongOver<Clock, T>;
};

}  // namespace fabricbench

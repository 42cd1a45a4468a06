// Pattern pingpong: a message there and one back, each round trip timed alone by the first rank. The rounds themselves,
// and how their number is found, are pattern/round_trip.hpp's, which other patterns share.
#pragma once

#include "pattern/local_batches.hpp"
#include "pattern/round_trip.hpp"

namespace fabricbench {

class Pingpong {
 public:
  static constexpr std::size_t timing_member = leader;

  template <class T>
  static constexpr bool runs_over = Transport<T> || LocalTransport<T>;

  static std::size_t bytes_per_sample(const PlanProbe& probe) { return 2 * probe.message_bytes; }

  template <class Clock, Transport T>
  static Outcome run(T& path, Task& task) {
    Rounds<Clock, T> rounds(path, task);
    Outcome outcome;
    if (task.team.member() == leader) {
      outcome = lead_phases<Clock>(rounds, task);
    } else {
      follow_orders(rounds, task.team);
    }
    outcome.bytes_per_sample = bytes_per_sample(task.probe);
    return outcome;
  }

  template <class Clock, LocalTransport T>
  static Outcome run(T& local, Task& task) {
    return take_local_batches<Clock>(task, local.bytes_there_and_back(),
                                     [&](std::size_t operations) { local.there_and_back(operations); });
  }
};

}  // namespace fabricbench

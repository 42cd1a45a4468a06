// Pattern pingpong: a message there and one back, each round trip timed alone by the first rank, or so many in a row
// (`round_trips`). The rounds themselves, and how their number is found, are pattern/round_trip.hpp's, which other
// patterns share.
//
// `unexpected`: over a layer that matches messages, both ranks first send each other as many that nobody receives until
// the timing is over, so that every receive looks through them.
#pragma once

#include "core/parameters.hpp"
#include "pattern/local_batches.hpp"
#include "pattern/round_trip.hpp"
#include "pattern/staged_rounds.hpp"

namespace fabricbench {

template <class T>
class PingpongOver;

template <PeerTransport T>
class PingpongOver<T> {
 public:
  PingpongOver(T& path, Task& task)
      : path_(path), task_(task), trips_(trips_of(task.probe)), rounds_(rounds_over(path, task, trips_)) {
    if constexpr (MatchingTransport<T>) unexpected_ = whole_parameter(task.probe, "unexpected");
  }

  Outcome run() {
    if constexpr (MatchingTransport<T>) path_.leave_unmatched(unexpected_);
    Outcome outcome = run_rounds(rounds_, task_);
    if constexpr (MatchingTransport<T>) path_.take_unmatched(unexpected_);
    outcome.operations_per_sample = trips_.in_a_row;
    outcome.bytes_per_sample = (OneSidedTransport<T> ? 1 : 2) * trips_.in_a_row * task_.probe.message_bytes;
    if constexpr (StagedTransport<T>) task_.findings.stages.push_back(stages_of(path_, task_));
    return outcome;
  }

 private:
  /// Those of a probe. Failure: they are none that this path can do.
  static RoundTrips trips_of(const PlanProbe& probe) {
    const RoundTrips trips{.answers_own = word_parameter<words::Answer>(probe, "answer") == words::Answer::own,
                           .in_a_row = whole_parameter(probe, "round_trips")};
    if (OneSidedTransport<T> && trips.answers_own) {
      throw Failure(FailureCode::unsupported, "nobody answers here: leave answer out");
    }
    if ((OneSidedTransport<T> || !T::traits.is_reliable) && trips.in_a_row > 1) {
      throw Failure(FailureCode::unsupported,
                    "round_trips above 1 need a path on which every message is answered and none is lost");
    }
    if (StagedTransport<T> && trips.in_a_row > 1) {
      throw Failure(FailureCode::unsupported,
                    "stages are measured of one round trip at a time: leave round_trips or stages out");
    }
    return trips;
  }
  using RoundsHere = Rounds<T, HooksOver<T>>;
  static RoundsHere rounds_over(T& path, Task& task, [[maybe_unused]] RoundTrips trips) {
    if constexpr (OneSidedTransport<T>) {
      return {path, task};
    } else {
      return {path, task, with_stages(path, task), trips};
    }
  }

  T& path_;
  Task& task_;
  RoundTrips trips_;
  std::size_t unexpected_ = 0;
  RoundsHere rounds_;
};

template <LocalTransport T>
class PingpongOver<T> {
 public:
  PingpongOver(T& local, Task& task) : local_(local), task_(task) {}

  Outcome run() {
    return take_local_batches(task_, local_.bytes_there_and_back(),
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

  template <class T>
  using Over = PingpongOver<T>;
};

}  // namespace fabricbench

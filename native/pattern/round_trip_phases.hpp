// The warm-up and the measurement of round trips: batches of them, and between batches the first rank applies the
// stopping rule and tells the other over the control plane.
#pragma once

#include <numeric>

#include "base/failure.hpp"
#include "core/stopping.hpp"
#include "pattern/round_trip.hpp"

namespace fabricbench {

inline double mean_seconds(std::span<const std::uint64_t> ticks, const Task& task) {
  if (ticks.empty()) return task.probe.reply_timeout_seconds;
  const std::uint64_t sum = std::accumulate(ticks.begin(), ticks.end(), std::uint64_t{0});
  return task.timebase.to_seconds(sum) / static_cast<double>(ticks.size());
}

inline void refuse_silence(const Series& series, const Counters& counters) {
  if (series.size() > 0) return;
  throw Failure(FailureCode::timeout, "none of " + std::to_string(counters.sent) +
                                          " messages was answered in time: is something filtering this protocol on "
                                          "the way, or is the timeout below the round trip time?");
}

/// One phase. It begins anew while nothing has been answered and no more than a few messages were lost: waiting for
/// what is lost may take longer than the phase has.
template <class Clock, class Rounds>
Outcome lead_phase(Rounds& rounds, Task& task, const Stopping& stopping, Series& series, double& seconds_per_sample) {
  StoppingRule rule(stopping);
  Outcome outcome;
  const std::uint64_t most_lost = rounds.counters().lost + first_tries;
  const std::uint64_t limit = task.timebase.to_ticks(stopping.maximum_seconds);
  std::uint64_t begin = Clock::now();
  while (!outcome.stop) {
    // A single round trip tells how many fit into the time.
    const std::size_t before = series.size();
    const std::size_t count = seconds_per_sample > 0 ? rule.next_batch(before, outcome.seconds, seconds_per_sample) : 1;
    task.team.send(follower, rounds.order(count + 1));
    rounds.lead(count, series, begin + limit);
    seconds_per_sample = rounds.seconds_of(mean_seconds(series.ticks().subspan(before), task));
    outcome.seconds = task.timebase.to_seconds(Clock::now() - begin);
    outcome.stop = rule.decide(series.ticks(), outcome.seconds);
    if (series.size() == 0 && rounds.counters().lost < most_lost) {
      outcome.stop.reset();
      outcome.seconds = 0;
      begin = Clock::now();
    }
  }
  return outcome;
}

/// Both phases, on the rank that keeps the time.
template <class Clock, class Rounds>
Outcome lead_phases(Rounds& rounds, Task& task) {
  const Dismissal dismissal(task.team);
  double seconds_per_sample = 0;
  Stopping warmup = task.probe.stopping;
  warmup.minimum_samples = warmup.maximum_samples = task.probe.warmup_samples;
  if (task.probe.warmup_samples > 0) {
    lead_phase<Clock>(rounds, task, warmup, task.samples.warmup, seconds_per_sample);
    refuse_silence(task.samples.warmup, rounds.counters());
  }
  rounds.start_counting();
  Outcome outcome = lead_phase<Clock>(rounds, task, task.probe.stopping, task.samples.measured, seconds_per_sample);
  refuse_silence(task.samples.measured, rounds.counters());
  task.counters.add(rounds.counters());
  return outcome;
}

}  // namespace fabricbench

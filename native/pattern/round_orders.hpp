// Batches of rounds, whatever a round is: the first rank orders a batch over the control plane, applies the stopping
// rule (core/stopping.hpp) to what it took and orders the next; the second follows. First a warm-up, then the
// measurement.
#pragma once

#include <cstdint>
#include <numeric>
#include <span>

#include "base/failure.hpp"
#include "core/measurement.hpp"
#include "core/stopping.hpp"
#include "pattern/payload.hpp"
#include "transport/transport.hpp"

namespace fabricbench {

inline constexpr std::size_t leader = 0;
inline constexpr std::size_t follower = 1;

/// How often the first message of a phase is sent before the peer is taken as silent: where 2 % are lost on either way,
/// one phase in ten million is given up wrongly.
inline constexpr std::size_t first_tries = 5;

/// What the leader tells the follower over the control plane: answer the messages [first, first + count), then ask
/// again. A count of 0 ends the rounds.
struct RoundOrder {
  static constexpr MessageType message_type = MessageType::round_order;
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

/// Lets the follower go when the leader is done, however it ends: else a failing leader would leave it waiting.
class FollowerRelease {
 public:
  explicit FollowerRelease(const CellTeam& team) : team_(team) {}
  ~FollowerRelease() { team_.send(follower, RoundOrder{}); }
  FollowerRelease(const FollowerRelease&) = delete;
  FollowerRelease& operator=(const FollowerRelease&) = delete;

 private:
  const CellTeam& team_;
};

/// Note the messages of an order, on either rank. Of rounds that do not tell, none: nobody sends messages there.
template <class Rounds>
void note_passed(const Rounds& rounds, RoundOrder order, std::size_t rank, MessagesPassed& passed) {
  if constexpr (requires { rounds.followed(order); }) {
    const MessagesPassed followed = rounds.followed(order);
    passed.add(rank == leader ? MessagesPassed{.sent = followed.received, .received = followed.sent} : followed);
  }
}

/// Answer what the leader orders until it says that it is done.
template <class Rounds>
void follow_orders(Rounds& rounds, Task& task) {
  RoundOrder order = task.team.receive<RoundOrder>(leader);
  while (order.count > 0) {
    note_passed(rounds, order, follower, task.findings.passed);
    order = rounds.follow(order, task.team);
  }
}

inline double mean_seconds(std::span<const std::uint64_t> times_ns, const Task& task) {
  if (times_ns.empty()) return task.probe.reply_timeout_seconds;
  const std::uint64_t sum = std::accumulate(times_ns.begin(), times_ns.end(), std::uint64_t{0});
  return ns_to_seconds(sum) / static_cast<double>(times_ns.size());
}

inline void refuse_silence(const Series& series, const Counters& counters) {
  if (series.size() > 0) return;
  throw Failure(FailureCode::timeout, "none of " + std::to_string(counters.sent) +
                                          " messages was answered in time: is something filtering this protocol on "
                                          "the way, or is the timeout below the round trip time?");
}

/// One phase. It begins anew while nothing has been answered and no more than a few messages were lost: waiting for
/// what is lost may take longer than the phase has.
template <class Rounds>
Outcome lead_phase(Rounds& rounds, Task& task, const Stopping& stopping, Series& series, double& seconds_per_sample) {
  StoppingRule rule(stopping, task.samples.scratch);
  Outcome outcome;
  const std::uint64_t most_lost = rounds.counters().lost + first_tries;
  const std::uint64_t limit = seconds_to_ns(stopping.maximum_seconds);
  std::uint64_t begin = Clock::now();
  while (!outcome.stop) {
    // A single round trip tells how many fit into the time.
    const std::size_t before = series.size();
    const std::size_t count = seconds_per_sample > 0 ? rule.next_batch(before, outcome.seconds, seconds_per_sample) : 1;
    const RoundOrder order = rounds.order(count + 1);
    task.team.send(follower, order);
    note_passed(rounds, order, leader, task.findings.passed);
    rounds.lead(count, series, begin + limit);
    seconds_per_sample = rounds.seconds_of(mean_seconds(series.times_ns().subspan(before), task));
    outcome.seconds = ns_to_seconds(Clock::now() - begin);
    outcome.stop = rule.decide(series.times_ns(), outcome.seconds);
    if (series.size() == 0 && rounds.counters().lost < most_lost) {
      outcome.stop.reset();
      outcome.seconds = 0;
      begin = Clock::now();
    }
  }
  return outcome;
}

/// Both phases, on the rank that keeps the time.
template <class Rounds>
Outcome lead_phases(Rounds& rounds, Task& task) {
  const FollowerRelease release(task.team);
  double seconds_per_sample = 0;
  Stopping warmup = task.probe.stopping;
  warmup.minimum_samples = warmup.maximum_samples = task.probe.warmup_samples;
  if (task.probe.warmup_samples > 0) {
    lead_phase(rounds, task, warmup, task.samples.warmup, seconds_per_sample);
    refuse_silence(task.samples.warmup, rounds.counters());
  }
  rounds.start_counting();
  Outcome outcome = lead_phase(rounds, task, task.probe.stopping, task.samples.measured, seconds_per_sample);
  refuse_silence(task.samples.measured, rounds.counters());
  task.counters.add(rounds.counters());
  return outcome;
}

/// A pattern that times rounds, on either rank.
template <class Rounds>
Outcome run_rounds(Rounds& rounds, Task& task) {
  if (task.team.member() == leader) return lead_phases(rounds, task);
  follow_orders(rounds, task);
  return {};
}

}  // namespace fabricbench

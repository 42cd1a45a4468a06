// The untimed exchange before the timing: messages with a known payload go there and come back, and the leader
// compares.
#pragma once

#include "base/failure.hpp"
#include "pattern/round_trip.hpp"

namespace fabricbench {

/// Count what came back the same and what did not. Failures: nothing came back, or nothing as it was sent.
template <Transport T>
void verify(T& path, Task& task) {
  if (task.probe.verify_messages == 0) return;
  Rounds<KernelClock, T> rounds(path, task);
  if (task.team.member() != leader) return follow_orders(rounds, task.team);

  // Each try has a number of its own, so that a late answer to one is not taken for that to the next.
  std::size_t tries = 0;
  std::size_t lost_first = 0;
  const auto try_once = [&] {
    const auto is_same = rounds.lead_checked(task.token + tries++);
    if (!is_same && task.counters.verified == 0) ++lost_first;
    if (is_same) ++task.counters.verified;
    if (is_same && !*is_same) ++task.counters.corrupted;
  };
  const std::size_t most = T::traits.is_reliable ? 1 : first_tries;
  const auto is_silent = [&] { return lost_first == most; };
  task.team.send(follower, rounds.order(task.probe.verify_messages));
  const Dismissal dismissal(task.team);
  while (tries < task.probe.verify_messages && !is_silent()) try_once();
  // What was lost at first, one order each: who follows an order waits for its last message, and most cells need no
  // more.
  while (tries < task.probe.verify_messages + lost_first && !is_silent()) {
    task.team.send(follower, rounds.order(1));
    try_once();
  }
  if (task.counters.verified == 0) {
    throw Failure(FailureCode::timeout, "no answer to " + std::to_string(tries) + " messages, each within " +
                                            std::to_string(task.probe.reply_timeout_seconds) +
                                            " s: is something filtering this protocol on the way?");
  }
  if (task.counters.corrupted == task.counters.verified) {
    throw Failure(FailureCode::corrupted, "all " + std::to_string(task.counters.verified) +
                                              " verified messages came back with another payload: nothing was timed");
  }
}

}  // namespace fabricbench

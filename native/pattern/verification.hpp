// The untimed exchange before the timing: messages with a known payload go there and come back, and the leader
// compares.
#pragma once

#include "core/failure.hpp"
#include "pattern/round_trip.hpp"

namespace fabricbench {

/// How often the first message is sent before the peer is taken as silent: where 2 % are lost on either way, one cell
/// in ten million is given up wrongly.
inline constexpr std::size_t first_tries = 5;

/// Count what came back the same and what did not. Failures: nothing came back, or nothing as it was sent.
template <Transport T>
void verify(T& path, Task& task) {
  if (task.probe.verify_messages == 0) return;
  Rounds<KernelClock, T> rounds(path, task);
  if (task.team.member() != leader) return follow_orders(rounds, task.team);

  // Each try has a number of its own, so that a late answer to one is not taken for that to the next.
  const std::size_t tries = T::traits.is_reliable ? 1 : first_tries;
  task.team.send(follower, rounds.order(task.probe.verify_messages + tries - 1));
  const Dismissal dismissal(task.team);
  std::size_t lost_first = 0;
  for (std::size_t i = 0; i < task.probe.verify_messages + lost_first; ++i) {
    const auto is_same = rounds.lead_checked(task.token + i);
    if (!is_same && task.counters.verified == 0 && ++lost_first == tries) break;
    if (!is_same) continue;
    ++task.counters.verified;
    if (!*is_same) ++task.counters.corrupted;
  }
  if (task.counters.verified == 0) {
    throw Failure(FailureCode::timeout, "no answer to " + std::to_string(lost_first) + " messages, each within " +
                                            std::to_string(task.probe.reply_timeout_seconds) +
                                            " s: is something filtering this protocol on the way?");
  }
  if (task.counters.corrupted == task.counters.verified) {
    throw Failure(FailureCode::corrupted, "all " + std::to_string(task.counters.verified) +
                                              " verified messages came back with another payload: nothing was timed");
  }
}

}  // namespace fabricbench

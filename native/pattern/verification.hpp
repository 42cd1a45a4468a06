// The untimed exchange before the timing: messages with a known payload go there and come back, and the leader
// compares.
#pragma once

#include "core/failure.hpp"
#include "pattern/round_trip.hpp"

namespace fabricbench {

/// Count what came back the same and what did not. Failures: nothing came back, or nothing as it was sent.
template <Transport T>
void verify(T& path, Task& task) {
  if (task.probe.verify_messages == 0) return;
  Rounds<KernelClock, T> rounds(path, task);
  if (task.team.member() != leader) return follow_orders(rounds, task.team);

  task.team.send(follower, rounds.order(task.probe.verify_messages));
  for (std::size_t i = 0; i < task.probe.verify_messages; ++i) {
    const auto is_same = rounds.lead_checked(task.token + i);
    // A peer that never answers is known after one bound, not after one for each message.
    if (!is_same && i == 0) break;
    if (!is_same) continue;
    ++task.counters.verified;
    if (!*is_same) ++task.counters.corrupted;
  }
  task.team.send(follower, RoundOrder{});
  if (task.counters.verified == 0) {
    throw Failure(FailureCode::timeout, "no answer to the first message within " +
                                            std::to_string(task.probe.reply_timeout_seconds) +
                                            " s: is something filtering this protocol on the way?");
  }
  if (task.counters.corrupted == task.counters.verified) {
    throw Failure(FailureCode::corrupted, "all " + std::to_string(task.counters.verified) +
                                              " verified messages came back with another payload: nothing was timed");
  }
}

}  // namespace fabricbench

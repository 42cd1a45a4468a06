// Patterns in which every rank sends to and receives from its neighbours, turn after turn, as stencil codes do:
// pingping, sendrecv, exchange, halo. Nothing but the messages keeps the ranks together. Each rank times its own turns,
// one right after the other; a turn of the cell lasts from when the last rank was done with the one before until the
// last is done with it, for which each rank notes the global time at which a batch begins. Between batches the first
// rank applies the stopping rule to its own times and tells the others over the control plane.
#pragma once

#include <numeric>
#include <optional>

#include "base/failure.hpp"
#include "core/stopping.hpp"
#include "pattern/turns.hpp"

namespace fabricbench {

/// What the first rank tells the others: take this many turns, in the warm-up or in the measurement. 0 ends the cell.
struct TurnOrder {
  static constexpr MessageType message_type = MessageType::turn_order;
  std::uint32_t turns = 0;
  bool is_measured = false;

  bool is_over() const { return turns == 0; }
};

template <Transport T>
class Lockstep {
 public:
  Lockstep(std::span<LinkOver<T>> links, Task& task) : turns_(links, task), task_(task) {
    task.findings.missed.reserve(task.probe.stopping.maximum_samples);
  }

  Outcome run() {
    Outcome outcome;
    task_.team.member() == 0 ? void(outcome = lead()) : follow();
    outcome.channels = channels_of(task_.probe.pattern, task_.team.size(), group_parameters(task_.probe));
    outcome.bytes_per_sample = outcome.channels * task_.probe.message_bytes;
    return outcome;
  }

 private:
  Outcome lead() {
    const TeamOrders<TurnOrder> orders(task_.team);
    Stopping warmup = task_.probe.stopping;
    warmup.minimum_samples = warmup.maximum_samples = task_.probe.warmup_samples;
    if (task_.probe.warmup_samples > 0) lead_phase(orders, warmup, task_.samples.warmup, false);
    turns_.start_counting();
    const Outcome outcome = lead_phase(orders, task_.probe.stopping, task_.samples.measured, true);
    task_.counters.add(turns_.counters());
    return outcome;
  }

  void follow() {
    bool is_counting = false;
    TeamOrders<TurnOrder> orders(task_.team);
    while (const std::optional<TurnOrder> order = orders.next()) {
      if (order->is_measured && !is_counting) turns_.start_counting();
      is_counting = order->is_measured;
      take(*order);
    }
    if (is_counting) task_.counters.add(turns_.counters());
  }

  /// One more turn goes first, untimed: the others come from their sleep.
  void take(TurnOrder order) {
    Series& series = order.is_measured ? task_.samples.measured : task_.samples.warmup;
    std::vector<std::uint32_t>& missed = task_.findings.missed;
    turns_.take();
    series.begin_batch(task_.clock.to_global(Clock::now()));
    std::uint64_t before = Clock::now();
    for (std::uint32_t i = 0; i < order.turns; ++i) {
      const bool is_complete = turns_.take();
      const std::uint64_t now = Clock::now();
      series.push(now - before);
      before = now;
      if (!is_complete && order.is_measured) [[unlikely]]
        missed.push_back(static_cast<std::uint32_t>(series.size() - 1));
    }
  }

  Outcome lead_phase(const TeamOrders<TurnOrder>& orders, const Stopping& stopping, Series& series, bool is_measured) {
    StoppingRule rule(stopping, task_.samples.scratch);
    Outcome outcome;
    const std::uint64_t begin = Clock::now();
    double seconds_per_turn = 0;
    while (!outcome.stop) {
      const std::size_t before = series.size();
      const std::size_t count = seconds_per_turn > 0 ? rule.next_batch(before, outcome.seconds, seconds_per_turn) : 1;
      const TurnOrder order{static_cast<std::uint32_t>(count), is_measured};
      orders.give(order);
      take(order);
      const auto taken = series.times_ns().subspan(before);
      const std::uint64_t sum = std::accumulate(taken.begin(), taken.end(), std::uint64_t{0});
      seconds_per_turn = ns_to_seconds(sum) / static_cast<double>(taken.size());
      outcome.seconds = ns_to_seconds(Clock::now() - begin);
      outcome.stop = rule.decide(series.times_ns(), outcome.seconds);
    }
    return outcome;
  }

  Turns<T> turns_;
  Task& task_;
};

/// The untimed turns before the timing of any pattern with many ranks: every link carries messages with a payload of
/// their own, and the receivers compare.
template <Transport T>
class LinkVerification {
 public:
  LinkVerification(std::span<LinkOver<T>> links, Task& task) : links_(links), task_(task), turns_(links, task) {}

  /// Failures: nothing came, or nothing as it was sent.
  void run() {
    // All members take as many turns, so that one lost message must not be the only one.
    constexpr std::size_t least_where_messages_are_lost = 4;
    const std::size_t wanted = T::traits.is_reliable
                                   ? task_.probe.verify_messages
                                   : std::max(task_.probe.verify_messages, least_where_messages_are_lost);
    std::size_t expected = 0;
    for (std::uint32_t turn = 0; turn < wanted; ++turn) {
      turns_.buffers().fill(turn);
      turns_.take();
      const auto [same, all] = turns_.buffers().compare(turn, [&](std::size_t link) { return turns_.has_come(link); });
      expected += all;
      task_.counters.verified += all;
      task_.counters.corrupted += all - same;
    }
    judge(expected);
  }

 private:
  void judge(std::size_t expected) const {
    const bool receives = std::ranges::any_of(links_, [](const LinkOver<T>& link) { return link.link.receives; });
    if (receives && expected == 0) {
      throw Failure(FailureCode::timeout, "no message came from the neighbours within " +
                                              std::to_string(task_.probe.reply_timeout_seconds) +
                                              " s: is something filtering this protocol on the way?");
    }
    if (expected > 0 && task_.counters.corrupted == expected) {
      throw Failure(FailureCode::corrupted, "all " + std::to_string(expected) +
                                                " verified messages came with another payload: nothing was timed");
    }
  }

  std::span<LinkOver<T>> links_;
  Task& task_;
  Turns<T> turns_;
};

}  // namespace fabricbench

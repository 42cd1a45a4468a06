// Samples of something that this rank does alone. An operation may be far shorter than a reading of the clock, so a
// sample holds as many as make the reading count for little.
#pragma once

#include <cmath>

#include "core/measurement.hpp"
#include "core/stopping.hpp"

namespace fabricbench {

// With this ratio the clock's share of a sample is at most 2 %.
inline constexpr double sample_to_overhead = 50;

template <class Operate>
std::uint64_t time_operations(std::size_t operations, Operate& operate) {
  const std::uint64_t begin = Clock::now();
  operate(operations);
  return Clock::now() - begin;
}

/// The least power of two of operations that lasts long enough.
template <class Operate>
std::size_t choose_operations(const Task& task, Operate& operate) {
  const auto wanted = static_cast<std::uint64_t>(sample_to_overhead * task.clock_overhead_ns);
  constexpr std::size_t most = std::size_t{1} << 30U;
  std::size_t operations = 1;
  operate(operations);
  while (operations < most) {
    // The shortest of three, so that an interruption does not pass for a long operation.
    std::uint64_t shortest = time_operations(operations, operate);
    for (int again = 0; again < 2; ++again) shortest = std::min(shortest, time_operations(operations, operate));
    if (shortest >= wanted) break;
    operations *= 2;
  }
  return operations;
}

/// Take samples of `operate(operations)` until the stopping rule is content.
template <class Operate>
Outcome take_local_batches(Task& task, std::size_t bytes_per_operation, Operate operate) {
  Outcome outcome;
  outcome.operations_per_sample = choose_operations(task, operate);
  outcome.bytes_per_sample = outcome.operations_per_sample * bytes_per_operation;
  const std::uint64_t warmup_begin = Clock::now();
  const std::uint64_t warmup_ns = seconds_to_ns(task.probe.stopping.maximum_seconds);
  while (task.samples.warmup.size() < task.probe.warmup_samples && Clock::now() - warmup_begin < warmup_ns) {
    task.samples.warmup.push(time_operations(outcome.operations_per_sample, operate));
  }
  StoppingRule rule(task.probe.stopping, task.samples.scratch);
  Series& series = task.samples.measured;
  double seconds_per_sample = 0;
  const std::uint64_t begin = Clock::now();
  while (!outcome.stop) {
    const std::size_t count =
        seconds_per_sample > 0 ? rule.next_batch(series.size(), outcome.seconds, seconds_per_sample) : 1;
    for (std::size_t i = 0; i < count; ++i) {
      series.push(time_operations(outcome.operations_per_sample, operate));
    }
    outcome.seconds = ns_to_seconds(Clock::now() - begin);
    seconds_per_sample = outcome.seconds / static_cast<double>(series.size());
    outcome.stop = rule.decide(series.times_ns(), outcome.seconds);
  }
  return outcome;
}

}  // namespace fabricbench

// The timing loop of every MPI operation: call k begins on all ranks when the global clock shows T_k = T_0 + k windows,
// and its time on a rank is that rank's end minus T_k (window-synchronised start; Hoefler and Belli, SC'15; Hunold and
// Carpen-Amarie 2015). Nothing but clocks keeps the ranks together, so no barrier's own exit skew is in a sample.
#pragma once

#include <mpi.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/clock.hpp"
#include "core/clock_sync.hpp"
#include "core/message.hpp"

namespace fabricbench {

/// What a batch of calls is for. calibrate sets the computing loop and calls nothing; over ends the cell. Calls of
/// back_to_back follow each other, of barrier_start each follows a barrier, of the others each has a start that the
/// clocks agree on.
enum class CallPhase {
  over,
  estimate,
  warmup,
  measured,
  back_to_back,
  barrier_start,
  calibrate,
  computing,
  overlapped
};

/// How a rank waits for a start: asleep and at last spinning where it has a processor to itself; where it shares one,
/// asleep to the end, for whoever spins takes the processor from ranks that are still in the call before.
enum class Waiting { spin, sleep };

/// What the first rank tells all: take so many calls, from then on, one a window.
struct CallOrder {
  static constexpr MessageType message_type = MessageType::call_order;
  CallPhase phase = CallPhase::over;
  std::uint32_t calls = 0;
  std::int64_t start_ns = 0;        // global time of the first
  std::int64_t window_ns = 0;       // 0: one right after the other
  std::int64_t tolerance_ns = 0;    // who begins later than that has missed the window
  std::int64_t compute_ns = 0;      // how long the computing loop is to be
  Waiting waiting = Waiting::spin;  // each rank's own

  bool is_over() const { return phase == CallPhase::over; }
};

/// What the calls of one order took on this rank. One flat list, so that one reduction joins those of all ranks.
class CallTimes {
 public:
  explicit CallTimes(std::size_t calls) : calls_(calls), values_(2 * calls + 1) {}

  std::span<const std::uint64_t> times() const { return std::span(values_).first(calls_); }
  std::span<const std::uint64_t> lateness() const { return std::span(values_).subspan(calls_, calls_); }
  int error() const { return static_cast<int>(values_.back()); }
  std::span<std::uint64_t> values() { return values_; }

  void note(std::size_t call, std::int64_t time_ns, std::int64_t late_ns, int error) {
    values_[call] = static_cast<std::uint64_t>(std::max<std::int64_t>(time_ns, 0));
    values_[calls_ + call] = static_cast<std::uint64_t>(std::max<std::int64_t>(late_ns, 0));
    values_.back() = std::max(values_.back(), static_cast<std::uint64_t>(error));
  }
  /// For the rank of a pair that only answers: the time is the other's, and the slowest of the two must be it.
  void forget_times() { std::ranges::fill(std::span(values_).first(calls_), 0); }
  /// Join those of another thread: a call lasts as long as on the slowest.
  void take_slowest(const CallTimes& other) {
    std::ranges::transform(values_, other.values_, values_.begin(), [](auto a, auto b) { return std::max(a, b); });
  }

 private:
  std::size_t calls_;
  std::vector<std::uint64_t> values_;
};

// A sleeping thread comes back late by up to some 50 us (idle states, timers); the rest is spun away.
inline constexpr std::uint64_t wake_early_ns = 60'000;

/// Wait until this rank's clock shows `local_ns`; when it was seen to.
inline std::uint64_t wait_until(std::uint64_t local_ns, Waiting waiting) {
  std::uint64_t now = Clock::now();
  const std::uint64_t early = waiting == Waiting::spin ? wake_early_ns : 0;
  if (now + early < local_ns) {
    const std::uint64_t wake_ns = local_ns - early;
    const timespec wake{static_cast<time_t>(wake_ns / 1'000'000'000U), static_cast<long>(wake_ns % 1'000'000'000U)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &wake, nullptr);
    now = Clock::now();
  }
  while (now < local_ns) now = Clock::now();
  return now;
}

/// Take the calls of an order one after the other, as a plain loop does: nothing but calls between the two stamps. The
/// first is not counted, for ranks come to it one by one; the last has the time of all others.
template <class Call>
void take_in_a_row(Call& call, const CallOrder& order, const ClockModel& clock, CallTimes& times) {
  if (order.calls == 0) return;
  const std::uint64_t waited = wait_until(clock.to_local(order.start_ns), order.waiting);
  int error = call();
  const std::uint64_t began = Clock::now();
  for (std::uint32_t i = 1; i < order.calls && error == MPI_SUCCESS; ++i) error = call();
  const std::uint64_t ended = Clock::now();
  times.note(0, 0, clock.to_global(waited) - order.start_ns, error);
  times.note(order.calls - 1, static_cast<std::int64_t>(ended - began), 0, error);
}

/// Take the calls of an order, which has windows. `call()` returns MPI's error code.
template <class Call>
void take_in_windows(Call& call, const CallOrder& order, const ClockModel& clock, CallTimes& times) {
  std::int64_t start_ns = order.start_ns;
  for (std::size_t i = 0; i < order.calls; ++i, start_ns += order.window_ns) {
    const std::uint64_t began = wait_until(clock.to_local(start_ns), order.waiting);
    const int error = call();
    const std::uint64_t ended = Clock::now();
    times.note(i, clock.to_global(ended) - start_ns, clock.to_global(began) - start_ns, error);
    if (error != MPI_SUCCESS) [[unlikely]]
      break;
  }
}

/// Take the calls of an order from the start that it has.
template <class Call>
void take_calls(Call& call, const CallOrder& order, const ClockModel& clock, CallTimes& times) {
  if (order.window_ns == 0) return take_in_a_row(call, order, clock, times);
  take_in_windows(call, order, clock, times);
}

/// Take the calls of an order as most benchmarks of collectives do: each rank counts from when a barrier let it go.
template <class Call>
void take_after_barriers(Call& call, MPI_Comm communicator, const CallOrder& order, const ClockModel& clock,
                         CallTimes& times) {
  wait_until(clock.to_local(order.start_ns), order.waiting);
  for (std::size_t i = 0; i < order.calls; ++i) {
    const int barrier_error = MPI_Barrier(communicator);
    const std::uint64_t began = Clock::now();
    const int error = call();
    const std::uint64_t ended = Clock::now();
    times.note(i, static_cast<std::int64_t>(ended - began), 0, std::max(barrier_error, error));
    if (error != MPI_SUCCESS || barrier_error != MPI_SUCCESS) [[unlikely]]
      break;
  }
}

}  // namespace fabricbench

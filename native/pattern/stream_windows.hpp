// What streams of two ranks have in common: who sends, how the receiver logs its windows and applies the stopping rule
// while messages flow, and how the sender learns that it has enough.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>

#include "core/control.hpp"
#include "core/measurement.hpp"
#include "core/stopping.hpp"

namespace fabricbench {

inline constexpr std::size_t stream_sender = 0;
inline constexpr std::size_t stream_receiver = 1;

/// What the receiver sends the sender when it has seen enough.
using StreamEnd = Signal<MessageType::stream_end>;

/// Looks for the receiver's wish to end, seldom enough to cost nothing and often enough not to flood the path for long.
class EndWatch {
 public:
  explicit EndWatch(const Task& task) : team_(task.team), interval_(seconds_to_ns(look_every_seconds)) {}

  bool is_asked_to_end() {
    const std::uint64_t now = Clock::now();
    if (now - last_look_ < interval_) return false;
    last_look_ = now;
    return team_.try_receive<StreamEnd>(stream_receiver).has_value();
  }

  /// Whether the receiver has asked to end, where it may have ended the path before its message is here.
  bool has_been_asked() {
    const std::uint64_t begin = Clock::now();
    for (Pause pause; !team_.try_receive<StreamEnd>(stream_receiver); pause.sleep()) {
      if (Clock::now() - begin > seconds_to_ns(longest_way_seconds)) return false;
    }
    return true;
  }

 private:
  static constexpr double look_every_seconds = 2e-3;
  static constexpr double longest_way_seconds = 1;  // of a message of the control plane
  const CellTeam& team_;
  std::uint64_t interval_;
  std::uint64_t last_look_ = 0;
};

/// The receiver's windows: first those of the warm-up, then the measured ones, until the stopping rule is content. A
/// test turns its `Time` by hand.
template <class Time = Clock>
class WindowLog {
 public:
  explicit WindowLog(Task& task)
      : task_(task),
        rule_(task.probe.stopping, task.samples.scratch),
        phase_begin_(Time::now()),
        is_warm_(task.probe.warmup_samples == 0) {}

  /// Note a window that ended at `now` after `time_ns`; true when it was the last one that is wanted. Allocates
  /// nothing. A window in which it was decided whether there are enough is left out: what came meanwhile was waiting,
  /// and would be taken as slow first and as fast then.
  bool add(std::uint64_t now, std::uint64_t time_ns, std::uint32_t messages) {
    if (now - time_ns < undisturbed_from_ && !is_time_over(now)) return false;
    (is_warm_ ? task_.samples.measured : task_.samples.warmup).push(time_ns, messages * task_.probe.message_bytes);
    if (!is_warm_) {
      is_warm_ = task_.samples.warmup.size() >= task_.probe.warmup_samples || is_time_over(now);
      if (is_warm_) phase_begin_ = now;
      return false;
    }
    return is_decided(now);
  }

  bool is_measuring() const { return is_warm_; }
  /// Whether the present phase has had its time.
  bool is_time_over(std::uint64_t now) const {
    return ns_to_seconds(now - phase_begin_) >= task_.probe.stopping.maximum_seconds;
  }
  Outcome outcome() const { return {.stop = stop_, .seconds = seconds_}; }

 private:
  /// Deciding reorders a copy of all samples, so it is done each time that a quarter more are there, not at each
  /// window.
  bool is_decided(std::uint64_t now) {
    const std::size_t count = task_.samples.measured.size();
    seconds_ = ns_to_seconds(now - phase_begin_);
    const bool is_full = count >= task_.probe.stopping.maximum_samples;
    if (count < next_decision_ && !is_full && !is_time_over(now)) return false;
    next_decision_ = std::max(task_.probe.stopping.minimum_samples, count + count / 4 + 1);
    const std::uint64_t begin = Time::now();
    stop_ = rule_.decide(task_.samples.measured.times_ns(), seconds_);
    const std::uint64_t end = Time::now();
    if ((end - begin) * most_of_a_window > task_.samples.measured.times_ns().back())
      undisturbed_from_ = end + (end - begin);
    return stop_.has_value();
  }

  /// Deciding that takes less than this part of a window disturbs none.
  static constexpr std::uint64_t most_of_a_window = 100;

  Task& task_;
  StoppingRule rule_;
  std::uint64_t phase_begin_;
  std::uint64_t undisturbed_from_ = 0;  // no window that begins before counts
  bool is_warm_;
  std::size_t next_decision_ = 0;
  std::optional<StopReason> stop_;
  double seconds_ = 0;
};

inline constexpr std::byte end_mark{1};

}  // namespace fabricbench

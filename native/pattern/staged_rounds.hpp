// A ping-pong over a path that notes the stages of its messages: after each round trip, outside its stamps, the path is
// told its number and takes what the kernel has of it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "pattern/round_trip.hpp"

namespace fabricbench {

template <StagedTransport T>
class StageHooks {
 public:
  static constexpr bool answers_with_message = false;

  StageHooks(T& path, const Task& task) : path_(&path), timebase_(task.timebase) {}

  void before() { path_->settle(); }
  void led(std::uint32_t number, std::uint64_t begin, std::uint64_t end) {
    path_->keep(number, static_cast<std::int64_t>(timebase_.to_ns(end - begin)));
  }
  void arrived(std::uint32_t number) { number_ = number; }
  void departs(std::uint32_t, std::span<std::byte>) {}
  void answered() {
    path_->keep(number_, 0);
    path_->settle();
  }
  double seconds_of(double round_trip) const { return round_trip; }

 private:
  T* path_;
  Timebase timebase_;
  std::uint32_t number_ = 0;
};

/// Where the path notes stages it is told of rounds, and of nothing else.
template <class Clock, class T>
struct PingpongRounds {
  using type = Rounds<Clock, T>;
};
template <class Clock, StagedTransport T>
struct PingpongRounds<Clock, T> {
  using type = Rounds<Clock, T, StageHooks<T>>;
};

/// How many rows a cell needs: a round trip each, and the untimed one before each batch, of which there are a few dozen
/// as each is half as long as all before.
inline std::size_t stage_rows(const PlanProbe& probe) {
  constexpr std::size_t batches = 64;
  return probe.warmup_samples + probe.stopping.maximum_samples + batches;
}

/// What the path saw of the messages of both phases: on the leader of those that are samples, without the warm-up.
template <StagedTransport T>
StageReport stages_of(T& path, const Task& task) {
  StageReport report = path.take_stages();
  report.rank = task.team.world_rank(task.team.member());
  report.leads = task.team.member() == leader;
  if (report.leads) {
    const std::size_t warmup = std::min(task.samples.warmup.size(), report.messages.size());
    report.messages.erase(report.messages.begin(), report.messages.begin() + static_cast<std::ptrdiff_t>(warmup));
  }
  return report;
}

}  // namespace fabricbench

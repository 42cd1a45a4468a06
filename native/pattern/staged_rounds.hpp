// Round trips over a path that notes the stages of its messages: after each of them, outside its stamps, the path is
// told its number and takes what the kernel has of it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "pattern/round_trip.hpp"

namespace fabricbench {

/// `Hooks` are the pattern's own, of which `before` and `seconds_of` are kept.
template <StagedTransport T, class Hooks = NoHooks>
class StageHooks {
 public:
  static constexpr bool answers_with_message = false;

  StageHooks(T& path, Hooks hooks) : path_(&path), hooks_(hooks) {}

  /// What this thread waited for a processor during a pause, or in an untimed round trip, is no part of the next one.
  void before() {
    hooks_.before();
    path_->settle();
  }
  void led(std::uint32_t number, std::uint64_t begin, std::uint64_t end) {
    path_->keep(number, static_cast<std::int64_t>(end - begin));
    path_->settle();
  }
  void arrived(std::uint32_t number) { number_ = number; }
  void departs(std::uint32_t, std::span<std::byte>) {}
  void answered() {
    path_->keep(number_, 0);
    path_->settle();
  }
  double seconds_of(double round_trip) const { return hooks_.seconds_of(round_trip); }

 private:
  T* path_;
  [[no_unique_address]] Hooks hooks_;
  std::uint32_t number_ = 0;
};

/// What a path is told of rounds: of one that notes stages, all that StageHooks tells; of any other, the pattern's own.
template <class T, class Hooks>
struct HooksOverPath {
  using type = Hooks;
};
template <StagedTransport T, class Hooks>
struct HooksOverPath<T, Hooks> {
  using type = StageHooks<T, Hooks>;
};
template <class T, class Hooks = NoHooks>
using HooksOver = typename HooksOverPath<T, Hooks>::type;

/// How many rows a cell needs: a round trip each, and the untimed one before each batch, of which there are a few dozen
/// as each is half as long as all before.
inline std::size_t stage_rows(const PlanProbe& probe) {
  constexpr std::size_t batches = 64;
  return probe.warmup_samples + probe.stopping.maximum_samples + batches;
}

/// The hooks of a pattern's rounds over a path, which begins to note stages where it can.
template <class T, class Hooks = NoHooks>
HooksOver<T, Hooks> with_stages(T& path, const Task& task, Hooks hooks = {}) {
  if constexpr (StagedTransport<T>) {
    path.begin_stages(stage_rows(task.probe));
    return {path, hooks};
  } else {
    return hooks;
  }
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

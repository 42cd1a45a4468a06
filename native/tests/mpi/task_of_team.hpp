// A task of a team, by default of two ranks, and what it refers to, for tests that run a pattern without a cell around
// it.
#pragma once

#include <memory>
#include <utility>

#include "core/measurement.hpp"

namespace fabricbench {

struct TaskOfTeam {
  TaskOfTeam() = default;
  /// Of the first of so many ranks, which the transport is between.
  TaskOfTeam(std::unique_ptr<ControlTransport> transport, int ranks)
      : control(std::move(transport)), team(control, RankList::first(ranks), 0) {}
  TaskOfTeam(const TaskOfTeam&) = delete;
  TaskOfTeam& operator=(const TaskOfTeam&) = delete;

  Control control;
  CellTeam team{control, {0, 1}, 0};
  PlanProbe probe;
  std::uint32_t sequence = 1;
  Samples samples;
  Counters counters;
  Findings findings;
  ClockModel clock;
  Task task{.probe = probe,
            .team = team,
            .clock_overhead_ns = 0,
            .token = 0xfab1,
            .sequence = sequence,
            .samples = samples,
            .counters = counters,
            .findings = findings,
            .clock = clock,
            .is_over = {}};
};

}  // namespace fabricbench

// A task between two ranks, and what it refers to, for tests that run a pattern without a cell around it.
#pragma once

#include "core/measurement.hpp"

namespace fabricbench {

struct TaskOfTwo {
  TaskOfTwo() = default;
  TaskOfTwo(const TaskOfTwo&) = delete;
  TaskOfTwo& operator=(const TaskOfTwo&) = delete;

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
            .timebase = {},
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

// Who directs the calls of a cell: the first rank says when each batch begins and how wide its windows are, applies the
// stopping rule to the slowest rank's times, and tells the others over the control plane.
#pragma once

#include <mpi.h>

#include <functional>
#include <vector>

#include "core/measurement.hpp"
#include "core/stopping.hpp"
#include "mpi_operation/timed_calls.hpp"

namespace fabricbench {

class Conductor {
 public:
  /// Does on this rank what an order says; called once for each batch, never between two stamps.
  using Take = std::function<void(const CallOrder&, CallTimes&)>;

  Conductor(MPI_Comm communicator, Task& task, Take take);

  /// Warm up and measure; then take calls back to back, and, `with_overlap`, find how much of a call hides behind
  /// computing. Collective.
  Outcome run(bool with_overlap);

 private:
  Outcome lead(bool with_overlap);
  void follow();
  void estimate();
  void learn(CallPhase phase, std::int64_t window_ns);
  Outcome lead_phase(const Stopping& stopping, CallPhase phase);
  void measure_back_to_back();
  void measure_overlap(double pure_ns);
  /// Order a batch, take part in it, and join what all ranks have.
  void direct(CallPhase phase, std::size_t calls, std::int64_t window_ns);
  void take(const CallOrder& order);
  void keep(const CallOrder& order, const CallTimes& own);
  void join(CallTimes& own);
  std::int64_t next_start();
  void adapt(std::size_t valid);
  std::int64_t usual_lateness() const;

  MPI_Comm communicator_;
  Task& task_;
  Take take_;
  CallTimes slowest_{0};  // of the last batch over all ranks, on the first rank
  std::int64_t slowest_window_ns_ = 0;
  std::vector<std::uint64_t> valid_;  // slowest times of a phase whose windows nobody missed
  double back_to_back_ns_ = 0;        // a call of a batch without windows
  std::int64_t window_ns_ = 0;
  std::int64_t tolerance_ns_ = 0;
  std::int64_t compute_ns_ = 0;
  std::int64_t lead_ns_ = 0;  // from an order to its first call
  bool is_first_order_ = true;
};

}  // namespace fabricbench

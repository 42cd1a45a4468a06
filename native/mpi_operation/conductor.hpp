// Who directs the calls of a cell: the first rank says when each batch begins and how wide its windows are, applies the
// stopping rule to the slowest rank's times, and tells the others over the control plane.
#pragma once

#include <mpi.h>

#include <functional>
#include <limits>
#include <vector>

#include "core/measurement.hpp"
#include "core/stopping.hpp"
#include "mpi_operation/timed_calls.hpp"

namespace fabricbench {

/// What a rank computes while a nonblocking call is under way. It makes no MPI call: nothing progresses but by itself.
class Computing {
 public:
  /// Fit the loop to a time on this rank.
  void calibrate(std::int64_t time_ns);
  void operator()() const;

 private:
  std::uint64_t iterations_ = 0;
};

class Conductor {
 public:
  /// Does on this rank what an order says; called once for each batch, never between two stamps.
  using Take = std::function<void(const CallOrder&, CallTimes&)>;

  /// Collective. `threads`: how many call at once on this rank.
  Conductor(MPI_Comm communicator, Task& task, Take take, int threads = 1);

  /// What is measured beside calls back to back and from an agreed start.
  struct Also {
    bool barrier_start = false;
    bool overlap = false;  // how much of a call hides behind computing
  };

  /// Take calls back to back and after barriers; then warm up and measure from an agreed start. Collective.
  Outcome run(Also also);

 private:
  Outcome lead(Also also);
  void follow();
  void estimate();
  void learn(CallPhase phase, std::int64_t window_ns, double most_late_ns);
  Outcome lead_phase(const Stopping& stopping, CallPhase phase);
  void measure_loops(bool with_barrier_start);
  double look(CallPhase phase, double call_ns);
  std::size_t calls_of_loop(double call_ns) const;
  void measure_overlap(double pure_ns);
  /// Order a batch, take part in it, and join what all ranks have.
  void direct(CallPhase phase, std::size_t calls, std::int64_t window_ns);
  void take(const CallOrder& order);
  void keep(const CallOrder& order);
  void join(CallTimes& own);
  void average(const CallTimes& own);
  template <class Value>
  std::vector<Value> reduce(const std::vector<Value>& own, MPI_Datatype type, MPI_Op op);
  std::int64_t next_start();
  void adapt(std::size_t valid);
  std::int64_t tolerance() const;

  MPI_Comm communicator_;
  Task& task_;
  Take take_;
  const TeamOrders<CallOrder>* orders_ = nullptr;  // while this rank leads
  CallTimes slowest_{0};                           // of the last batch over all ranks, on the first rank
  std::int64_t slowest_window_ns_ = 0;
  std::vector<std::uint64_t> valid_;  // slowest times of a phase whose windows nobody missed
  double call_ns_ = 0;                // what a call takes in plain loops
  double barrier_start_ns_ = 0;       // a call of the last batch after barriers, mean over ranks
  Waiting waiting_ = Waiting::sleep;
  double reading_ns_ = 0;    // one look at the clock
  double most_late_ns_ = 0;  // what bounds the tolerance
  std::int64_t window_ns_ = 0;
  std::int64_t tolerance_ns_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t compute_ns_ = 0;
  std::int64_t lead_ns_ = 0;  // from an order to its first call
  bool is_first_order_ = true;
};

}  // namespace fabricbench

// A global clock over all ranks: hierarchical synchronisation with a linear drift model, as HCA3 (Hunold and
// Carpen-Amarie, "Hierarchical Clock Synchronization in MPI", CLUSTER 2018). A sweep has a round for each power of two:
// in round k the ranks that know the global time teach as many that do not, so that log2(ranks) rounds are enough; a
// teacher answers with its global time, so a learner's model is against rank 0 whoever taught it. Each sweep gives a
// rank one more point of its line. Points of the last seconds are kept: the longer their span, the better the drift is
// known.
//
// A clock that left its line (its rate was set anew, say) has a point off it by more than chance: what it was before is
// forgotten then, for a line through both would lie between.
//
// The bound of a model is half the shortest round trip, for no exchange of messages can tell where in it the answer was
// given, plus what chance leaves open, plus the teacher's bound; it grows with the time since.
#pragma once

#include <mpi.h>
#include <time.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "core/control.hpp"
#include "core/message.hpp"

namespace fabricbench {

/// How the monotonic clock of this rank is read against that of rank 0, with a bound of its error. Ranks that provably
/// read one clock (same boot, same time namespace) share it and need no line.
///
/// global = local + offset + drift * (local - at), in nanoseconds of Clock.
struct ClockModel {
  static constexpr MessageType message_type = MessageType::clock_model;
  double offset_ns = 0;
  double drift = 0;  // of the reference against this clock, 1e-9 is 1 ppb
  std::int64_t at_ns = 0;
  double error_ns = 0;     // what bounds the error at `at`
  double drift_error = 0;  // what bounds the error of the drift: the bound grows with the distance from `at`
  bool is_shared = true;
  // What the synchronisation found, whether it was needed or not: on a shared clock it shows how well it works.
  double estimated_offset_ns = 0;
  double estimated_drift = 0;
  double estimated_error_ns = 0;
  int exchanges = 0;

  std::int64_t to_global(std::uint64_t local_ns) const {
    const auto local = static_cast<std::int64_t>(local_ns);
    return local + static_cast<std::int64_t>(offset_ns + drift * static_cast<double>(local - at_ns));
  }
  /// What bounds the error of `to_global` at a time.
  double error_at(std::uint64_t local_ns) const {
    return error_ns + drift_error * std::abs(static_cast<double>(static_cast<std::int64_t>(local_ns) - at_ns));
  }
  std::uint64_t to_local(std::int64_t global_ns) const {
    // One step of the fixed point is exact to drift^2, some 1e-10 of the distance.
    const double first = static_cast<double>(global_ns - at_ns) - offset_ns;
    return static_cast<std::uint64_t>(global_ns - static_cast<std::int64_t>(offset_ns + drift * first));
  }
};

/// One offset as an exchange of messages tells it: at `local_ns` the global clock was `offset_ns` ahead, give or take
/// `bound_ns`.
struct OffsetPoint {
  double local_ns = 0;
  double offset_ns = 0;
  double bound_ns = 0;
};

/// The line through points by weighted least squares. What a round trip took beyond the shortest one it lost on either
/// way, so that is how far its point may lie from the others; what all have in common is within the shortest. Bounds
/// of offset and drift are those of the regression (Student's t, 99.9 %) and of how far clocks wander. With too few
/// points the drift is taken as 0, within what quartz may do.
ClockModel fit_clock(const std::vector<OffsetPoint>& points);

/// The points of one rank that still belong to one line.
class OffsetHistory {
 public:
  /// Add a point. Forgets those that are too old for its line, and all before it where it is off their line.
  void add(const OffsetPoint& point);
  const std::vector<OffsetPoint>& points() const { return points_; }

 private:
  bool is_off_line(const OffsetPoint& point) const;

  std::vector<OffsetPoint> points_;
};

/// How far a clock was off, and what of that may be chance: three standard errors, no more than the best bound.
struct ClockShift {
  double shift_ns = 0;
  double noise_ns = 0;
};

/// How far a clock has left a model by what some points say, the held up among them the less: those whose bound is
/// beyond the shortest that was ever seen. Of them alone: a line through them and earlier ones says less than what
/// happened.
ClockShift shift_from(const ClockModel& model, const std::vector<OffsetPoint>& points, double shortest_ns);

/// What a synchronisation found of the model before it.
struct ClockCheck {
  static constexpr MessageType message_type = MessageType::clock_check;
  ClockModel model;     // the new one
  double shift_ns = 0;  // by what the synchronisation found the old one off
  double noise_ns = 0;  // what of that may be chance
  double error_ns = 0;  // what bounds the error that the old one had by now
};

/// What tells clocks apart, as clock_identity() has it.
using ClockIdentity = TextMessage<MessageType::clock_identity>;

/// How many points a synchronisation takes, and how long it waits between two.
struct Sampling {
  int points;
  timespec between;
};

/// This rank's view of the clock of rank 0. Ranks with the same identity read the same clock, unless the exchange finds
/// them apart (machines that were started from one memory image have one boot), and use it as it is; what the exchange
/// found is in the model all the same.
class GlobalClock {
 public:
  /// Learn the global clock by messages of the communicator, which has the ranks of the control plane. Collective, as
  /// is `synchronise_again`; both throw what Control throws in a wait that does not end.
  GlobalClock(const Control& control, MPI_Comm communicator, const std::string& identity);
  /// The clock of a launch that needs no other.
  GlobalClock() = default;

  const ClockModel& model() const { return model_; }
  /// Whether all ranks read one clock; the same on all ranks.
  bool is_one_clock() const { return is_one_clock_; }
  /// Whether the last synchronisation is so long ago that another one is due.
  bool is_due() const;
  ClockCheck synchronise_again();

 private:
  void sweep_often(const Sampling& sampling);
  void sweep();
  void teach(int learner) const;
  void learn(int teacher);
  /// The best of several exchanges with a teacher, and the bound that it gave for its own time.
  OffsetPoint ask(int teacher, double& teacher_error);
  void learn_first();

  const Control* control_ = nullptr;
  MPI_Comm communicator_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 1;
  bool is_same_as_first_ = true;
  bool is_one_clock_ = true;
  bool is_together_ = true;  // what the exchange found of a clock that is said to be the first rank's
  OffsetHistory history_;
  std::vector<OffsetPoint> fresh_;  // of the synchronisation under way
  int exchanges_ = 0;
  double shortest_ns_ = std::numeric_limits<double>::infinity();  // half of the shortest round trip so far
  std::uint64_t synchronised_ns_ = 0;
  ClockModel model_;
};

/// What tells this rank's CLOCK_MONOTONIC from others: the boot that it counts from and the time namespace it is read
/// in, where its kernel has such. Empty where the system does not tell.
std::string clock_identity(const std::string& proc = "/proc");

/// How far the clocks of some ranks disagreed with one another while they measured.
struct ClockSpread {
  double error_ns = 0;  // what bounds the error of the difference of any two
  double shift_ns = 0;  // what the synchronisations before and after tell apart
  double noise_ns = 0;  // what of that may be chance
};

/// Of the ranks' checks at the end of what they measured.
ClockSpread spread_of(const std::vector<ClockCheck>& checks);

}  // namespace fabricbench

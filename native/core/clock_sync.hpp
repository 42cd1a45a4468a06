// A global clock over all ranks: hierarchical synchronisation with a linear drift model, as HCA3 (Hunold and
// Carpen-Amarie, "Hierarchical Clock Synchronization in MPI", CLUSTER 2018). A sweep has a round for each power of two:
// in round k the ranks that know the global time teach as many that do not, so that log2(ranks) rounds are enough; a
// teacher answers with its global time, so a learner's model is against rank 0 whoever taught it. Each sweep gives a
// rank one more point of its line. Points of the last seconds are kept: the longer their span, the better the drift is
// known.
//
// The bound of a model is half the shortest round trip, for no exchange of messages can tell where in it the answer was
// given, plus what chance leaves open, plus the teacher's bound; it grows with the time since.
#pragma once

#include <mpi.h>

#include <string>
#include <vector>

#include "core/global_clock.hpp"

namespace fabricbench {

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

/// What a synchronisation found of the model before it.
struct ClockCheck {
  ClockModel model;     // the new one
  double shift_ns = 0;  // the new global time less the old one, now
  double error_ns = 0;  // what bounds the error that the old one had by now
};

/// This rank's view of the clock of rank 0. Ranks with the same identity read the same clock and use it as it is; what
/// the exchange found is in the model all the same.
class GlobalClock {
 public:
  /// Learn the global clock. Collective over the communicator, as is `synchronise_again`.
  GlobalClock(MPI_Comm communicator, std::string identity);
  /// The clock of a launch that needs no other.
  GlobalClock() = default;

  const ClockModel& model() const { return model_; }
  /// Whether all ranks read one clock; the same on all ranks.
  bool is_one_clock() const { return is_one_clock_; }
  /// Whether the last synchronisation is so long ago that another one is due.
  bool is_due() const;
  ClockCheck synchronise_again();

 private:
  void sweep();
  void teach(int learner) const;
  void learn(int teacher);

  MPI_Comm communicator_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 1;
  bool is_same_as_first_ = true;
  bool is_one_clock_ = true;
  std::vector<OffsetPoint> points_;
  int exchanges_ = 0;
  std::uint64_t synchronised_ns_ = 0;
  ClockModel model_;
};

/// What tells this rank's CLOCK_MONOTONIC from others: the boot that it counts from and the time namespace it is read
/// in. Empty where the system does not tell.
std::string clock_identity();

/// How far the clocks of some ranks disagreed with one another while they measured.
struct ClockSpread {
  double error_ns = 0;  // what bounds the error of the difference of any two
  double shift_ns = 0;  // what the synchronisations before and after tell apart
};

/// Of the ranks' checks at the end of what they measured.
ClockSpread spread_of(const std::vector<ClockCheck>& checks);

}  // namespace fabricbench

// A global clock over all ranks: hierarchical synchronisation with a linear drift model, as HCA3 (Hunold and
// Carpen-Amarie, "Hierarchical Clock Synchronization in MPI", CLUSTER 2018). In round k the ranks that know the global
// time teach as many that do not, so that log2(ranks) rounds are enough; a teacher answers with its global time, so a
// learner's model is against rank 0 whoever taught it. The bound of a model is half the shortest round trip, for no
// exchange of messages can tell where in it the answer was given, plus the teacher's bound.
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

/// The line through points by least squares, its bound that of the worst point and its distance from the line.
/// The drift is 0 where the points are too close in time for the bounds to tell one.
ClockModel fit_clock(const std::vector<OffsetPoint>& points);

/// Learn the global clock. Collective over the communicator; rank 0's clock is the reference. Ranks with the same
/// `identity` read the same clock and use it as it is; what the exchange found is in the model all the same.
ClockModel synchronise_clocks(MPI_Comm communicator, const std::string& identity);

/// What tells this rank's CLOCK_MONOTONIC from others: the boot that it counts from and the time namespace it is read
/// in. Empty where the system does not tell.
std::string clock_identity();

/// Synchronise anew and say how far the model of the beginning is off now: `error_ns` is that and the new bound.
/// Collective.
ClockModel recheck_clock(MPI_Comm communicator, const std::string& identity, const ClockModel& model);

}  // namespace fabricbench

// MPI operations as cells: collective calls, one-sided access, and what else only MPI has. The time of a call is that
// from a start that the ranks' clocks agree on to its end on the slowest rank.
#pragma once

#include <mpi.h>

#include "core/measurement.hpp"

namespace fabricbench {

/// The untimed calls with known contents before the timing; counts what is right and what is not. Collective over the
/// communicator of the cell's ranks.
void verify_operation(MPI_Comm communicator, Task& task);

/// Measure the operation that the task's pattern names. Samples are nanoseconds on every rank.
Outcome run_operation(MPI_Comm communicator, Task& task);

}  // namespace fabricbench

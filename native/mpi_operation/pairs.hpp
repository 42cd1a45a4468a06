// Operations of two ranks that are no collectives: each a file of its own. The first rank's time is the operation's.
#pragma once

#include <mpi.h>

#include "core/measurement.hpp"

namespace fabricbench {

void verify_one_sided(MPI_Comm communicator, Task& task);
Outcome run_one_sided(MPI_Comm communicator, Task& task);

void verify_partitioned(MPI_Comm communicator, Task& task);
Outcome run_partitioned(MPI_Comm communicator, Task& task);

void verify_threaded(MPI_Comm communicator, Task& task);
Outcome run_threaded(MPI_Comm communicator, Task& task);

}  // namespace fabricbench

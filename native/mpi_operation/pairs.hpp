// Operations of two ranks that are no collectives: each a file of its own. The first rank's time is the operation's.
#pragma once

#include <mpi.h>

#include "core/measurement.hpp"

namespace fabricbench {

/// partitioned.cpp
struct Partitioned {
  static void verify(MPI_Comm communicator, Task& task);
  static Outcome run(MPI_Comm communicator, Task& task);
};

/// threaded.cpp
struct Threaded {
  static void verify(MPI_Comm communicator, Task& task);
  static Outcome run(MPI_Comm communicator, Task& task);
};

}  // namespace fabricbench

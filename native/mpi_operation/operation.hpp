// MPI operations as cells: collective calls, one-sided access, and what else only MPI has. The time of a call is that
// from a start that the ranks' clocks agree on to its end on the slowest rank.
//
// What message_bytes means and which bytes a sample counts (Outcome::bytes_per_sample, the `size` of the NCCL tests,
// from which algorithm and bus bandwidth follow), with n ranks:
//
//   barrier                                     no message: message_bytes must be 0; counts 0
//   bcast                                       the buffer; counts the buffer
//   gather(v), scatter(v), allgather(v)         the block of each rank, as OSU has it; counts n blocks
//   alltoall(v)                                 the block for each destination, as OSU has it; counts n blocks
//   reduce, allreduce, scan, exscan             the vector of doubles; counts the vector
//   reduce-scatter(-block)                      the block that each rank gets (OSU names the vector of n blocks);
//                                               counts n blocks
//   neighbor-allgather, neighbor-alltoall       the block for each of four neighbours; counts 4 blocks
//   put, get, accumulate                        what is accessed; counts it
//   fetch-and-op, compare-and-swap              one 64-bit integer: message_bytes must be 8; counts 8
//   partitioned                                 the whole message each way; counts both ways
//   threaded                                    the message of each thread each way; counts both ways of all threads
//
// An operation is a type that says what the table does not: a collective (mpi_operation/collective.hpp, of which
// rooted.hpp has the simplest), a one-sided access (one_sided.hpp), or anything else with verify(communicator, task)
// and run(communicator, task), which are the two functions below for it.
#pragma once

#include <mpi.h>

#include <array>
#include <string>

#include "base/failure.hpp"
#include "core/measurement.hpp"

namespace fabricbench {

/// The untimed calls with known contents before the timing; counts what is right and what is not. Collective over the
/// communicator of the cell's ranks.
void verify_operation(MPI_Comm communicator, Task& task);

/// Measure the operation that the task's pattern names. Samples are nanoseconds on every rank.
Outcome run_operation(MPI_Comm communicator, Task& task);

// Two operations that are neither collectives nor accesses, each a file of its own. The first rank's time is the
// operation's.

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

/// Turn an error code of MPI into a Failure: the communicators and windows of this folder return errors instead of
/// aborting.
inline void check_mpi(int error, const char* call) {
  if (error == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(error, text.data(), &length);
  throw Failure(FailureCode::error, std::string(call) + " failed: " + text.data());
}

}  // namespace fabricbench

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
//   put, get, accumulate                        what one call accesses; counts what all calls of a sample do
//   fetch-and-op, compare-and-swap              one 64-bit integer: message_bytes must be 8; counts 8
//   partitioned                                 the whole message each way; counts both ways
//   threaded                                    the message of each thread each way; counts both ways of all threads
//
// An operation is a type that says what the table does not: a collective (mpi_operation/collective.hpp, of which
// rooted.hpp has the simplest), a one-sided access (one_sided.hpp), or anything else whose prepare(communicator, task)
// makes a PreparedOperation of its own (threaded.cpp).
#pragma once

#include <mpi.h>

#include <array>
#include <memory>
#include <string>

#include "base/failure.hpp"
#include "core/measurement.hpp"

namespace fabricbench {

/// The operation of a cell on one rank. Making it checks what is asked and takes the memory, which one rank alone may
/// lack; what follows is collective, and each step begins when no rank has failed in the one before. Destroying it is
/// this rank's affair alone again: what MPI frees collectively is left to `close`, and is lost where a rank never comes
/// there.
class PreparedOperation {
 public:
  PreparedOperation() = default;
  virtual ~PreparedOperation() = default;
  PreparedOperation(const PreparedOperation&) = delete;
  PreparedOperation& operator=(const PreparedOperation&) = delete;

  /// Make what MPI needs for the calls: communicators, windows, requests.
  virtual void open() {}
  /// The untimed calls with known contents before the timing; counts what is right and what is not.
  virtual void verify() = 0;
  /// Measure. Samples are nanoseconds, on the first rank.
  virtual Outcome run() = 0;
  /// Collective: free what can only be freed together, once all ranks have left `run`, however it ended.
  virtual void close() {}
};

/// The operation that the task's pattern names, over the communicator of the cell's ranks; both outlive it.
std::unique_ptr<PreparedOperation> prepare_operation(MPI_Comm communicator, Task& task);

/// Failure: everything was verified, and all of it is wrong.
void refuse_wrong(const Counters& counters);

// Two operations that are neither collectives nor accesses, each a file of its own. The first rank's time is the
// operation's.

/// partitioned.cpp
struct Partitioned {
  static std::unique_ptr<PreparedOperation> prepare(MPI_Comm communicator, Task& task);
};

/// threaded.cpp
struct Threaded {
  static std::unique_ptr<PreparedOperation> prepare(MPI_Comm communicator, Task& task);
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

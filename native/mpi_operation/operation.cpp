#include "mpi_operation/operation.hpp"

#include <algorithm>
#include <array>

#include "mpi_operation/collective_cell.hpp"
#include "mpi_operation/exchanged.hpp"
#include "mpi_operation/neighbourhood.hpp"
#include "mpi_operation/pairs.hpp"
#include "mpi_operation/reductions.hpp"
#include "mpi_operation/rooted.hpp"

namespace fabricbench {
namespace {

struct OperationEntry {
  Pattern pattern;
  const char* parameter;
  void (*verify)(MPI_Comm communicator, Task& task);
  Outcome (*run)(MPI_Comm communicator, Task& task);
};

template <class Op>
constexpr OperationEntry collective{Op::pattern, "mode", verify_collective<Op>, run_collective<Op>};

constexpr OperationEntry one_sided(Pattern pattern) { return {pattern, "sync", verify_one_sided, run_one_sided}; }

// One line for each operation.
constexpr std::array operations{
    collective<Barrier>,
    collective<Bcast>,
    collective<Gather>,
    collective<Gatherv>,
    collective<Scatter>,
    collective<Scatterv>,
    collective<Reduce>,
    collective<Allreduce>,
    collective<ReduceScatter>,
    collective<ReduceScatterBlock>,
    collective<Allgather>,
    collective<Allgatherv>,
    collective<Alltoall>,
    collective<Alltoallv>,
    collective<Scan>,
    collective<Exscan>,
    collective<NeighborAllgather>,
    collective<NeighborAlltoall>,
    one_sided(Pattern::put),
    one_sided(Pattern::get),
    one_sided(Pattern::accumulate),
    one_sided(Pattern::fetch_and_op),
    one_sided(Pattern::compare_and_swap),
    OperationEntry{Pattern::partitioned, "partitions", verify_partitioned, run_partitioned},
    OperationEntry{Pattern::threaded, "threads", verify_threaded, run_threaded},
};

const OperationEntry& entry_of(Pattern pattern) {
  const auto* const found = std::ranges::find(operations, pattern, &OperationEntry::pattern);
  if (found != operations.end()) return *found;
  throw Failure(FailureCode::unsupported, std::string(name_of(pattern)) + " is no operation of MPI");
}

}  // namespace

std::vector<std::string> operation_parameters(Pattern pattern) { return {entry_of(pattern).parameter}; }

void verify_operation(MPI_Comm communicator, Task& task) {
  MPI_Comm_set_errhandler(communicator, MPI_ERRORS_RETURN);
  Counters& counters = task.counters;
  entry_of(task.probe.pattern).verify(communicator, task);
  if (counters.verified > 0 && counters.corrupted == counters.verified) {
    throw Failure(FailureCode::corrupted,
                  "all " + std::to_string(counters.verified) + " verified results are wrong: nothing was timed");
  }
}

Outcome run_operation(MPI_Comm communicator, Task& task) {
  return entry_of(task.probe.pattern).run(communicator, task);
}

}  // namespace fabricbench

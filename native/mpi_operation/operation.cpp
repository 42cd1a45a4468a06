#include "mpi_operation/operation.hpp"

#include "mpi_operation/collective_cell.hpp"
#include "mpi_operation/operations.inc"

namespace fabricbench {
namespace {

/// What the listed types do, by the pattern's name; those left out are no operations of MPI.
struct OperationEntry {
  void (*verify)(MPI_Comm communicator, Task& task) = nullptr;
  Outcome (*run)(MPI_Comm communicator, Task& task) = nullptr;
};

template <class Op>
constexpr OperationEntry entry_for() {
  if constexpr (requires { Op::kind; }) {
    return {verify_collective<Op>, run_collective<Op>};
  } else if constexpr (OneSidedAccess<Op>) {
    return {verify_one_sided<Op>, run_one_sided<Op>};
  } else {
    return {Op::verify, Op::run};
  }
}

template <class... Each>
constexpr auto entries_of(PatternList<Each...>) {
  std::array<OperationEntry, names_of<Pattern>.size()> entries;
  ((entries[static_cast<std::size_t>(Each::pattern)] = entry_for<Each>()), ...);
  return entries;
}
constexpr auto entries = entries_of(Operations{});

const OperationEntry& entry_of(Pattern pattern) {
  const OperationEntry& entry = entries[static_cast<std::size_t>(pattern)];
  if (entry.run != nullptr) return entry;
  throw Failure(FailureCode::unsupported, std::string(name_of(pattern)) + " is no operation of MPI");
}

}  // namespace

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

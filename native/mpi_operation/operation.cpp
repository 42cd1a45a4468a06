#include "mpi_operation/operation.hpp"

#include "mpi_operation/collective_cell.hpp"
#include "mpi_operation/operations.inc"

namespace fabricbench {
namespace {

using Prepare = std::unique_ptr<PreparedOperation> (*)(MPI_Comm communicator, Task& task);

template <class Op>
constexpr Prepare prepare_for() {
  if constexpr (requires { Op::kind; }) {
    return prepare_collective<Op>;
  } else if constexpr (OneSidedAccess<Op>) {
    return prepare_one_sided<Op>;
  } else {
    return Op::prepare;
  }
}

/// What the listed types do, by the pattern's name; those left out are no operations of MPI.
template <class... Each>
constexpr auto entries_of(PatternList<Each...>) {
  std::array<Prepare, names_of<Pattern>.size()> entries{};
  ((entries[static_cast<std::size_t>(Each::pattern)] = prepare_for<Each>()), ...);
  return entries;
}
constexpr auto entries = entries_of(Operations{});

}  // namespace

std::unique_ptr<PreparedOperation> prepare_operation(MPI_Comm communicator, Task& task) {
  const Prepare prepare = entries[static_cast<std::size_t>(task.probe.pattern)];
  if (prepare == nullptr) {
    throw Failure(FailureCode::unsupported, std::string(name_of(task.probe.pattern)) + " is no operation of MPI");
  }
  MPI_Comm_set_errhandler(communicator, MPI_ERRORS_RETURN);
  return prepare(communicator, task);
}

void refuse_wrong(const Counters& counters) {
  if (counters.verified == 0 || counters.corrupted < counters.verified) return;
  throw Failure(FailureCode::corrupted,
                "all " + std::to_string(counters.verified) + " verified results are wrong: nothing was timed");
}

}  // namespace fabricbench

// What an operation leaves to MPI when it ends: what is freed collectively, all ranks free together or none does.
#include "mpi_operation/operation.hpp"

#include <gtest/gtest.h>

#include "task_of_team.hpp"

namespace {

int freed_communicators = 0;

}  // namespace

/// In the place of the library's, which the standard has under a second name for that.
extern "C" int MPI_Comm_free(MPI_Comm* communicator) {
  ++freed_communicators;
  return PMPI_Comm_free(communicator);
}

namespace fabricbench {
namespace {

class Operations : public testing::Test, protected TaskOfTeam {
 protected:
  Operations() {
    probe.layer = Layer::mpi;
    probe.pattern = Pattern::neighbor_allgather;
    probe.message_bytes = 64;
    MPI_Comm_dup(MPI_COMM_WORLD, &communicator);
    freed_communicators = 0;
  }
  ~Operations() override { MPI_Comm_free(&communicator); }

  MPI_Comm communicator = MPI_COMM_NULL;
};

TEST_F(Operations, FreeTheirCommunicatorsWhereAllRanksCloseThem) {
  const std::unique_ptr<PreparedOperation> operation = prepare_operation(communicator, task);
  operation->open();
  EXPECT_EQ(freed_communicators, 0);
  operation->close();
  EXPECT_EQ(freed_communicators, 1);
}

TEST_F(Operations, ThatAreDestroyedByARankAloneFreeNone) {
  prepare_operation(communicator, task)->open();
  EXPECT_EQ(freed_communicators, 0);
}

}  // namespace
}  // namespace fabricbench

// Operation neighbor-alltoallv: MPI_Neighbor_alltoallv, what stencil codes call that exchange their halos by a
// collective. Blocks are of equal size, so that it stands beside neighbor-alltoall.
//
// This is native/mpi_operation/neighbor_alltoallv.hpp, with a line in the class Pattern of src/fabricbench/patterns.py:
//
//     NEIGHBOR_ALLTOALLV = _operation("neighbor-alltoallv", "MPI_Neighbor_alltoallv on a periodic 2-D grid")
#pragma once

#include "mpi_operation/neighbourhood.hpp"

namespace fabricbench {

/// Its blocks go where those of NeighborAlltoall go; only what the call is told differs.
struct NeighborAlltoallv : NeighborAlltoall {
  static constexpr const char* name = "MPI_Neighbor_alltoallv";

  static auto arguments(const Operands& operands) {
    return std::tuple(operands.send, operands.counts, operands.displacements, operands.type, operands.receive,
                      operands.counts, operands.displacements, operands.type, operands.communicator);
  }
  FABRICBENCH_CALLS(MPI_Neighbor_alltoallv, MPI_Ineighbor_alltoallv, MPI_Neighbor_alltoallv_init)
};

}  // namespace fabricbench

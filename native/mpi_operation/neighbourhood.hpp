// Collectives among neighbours on a periodic 2-D grid, as MPI_Dims_create shapes it. Blocks are in MPI's order: the
// neighbour one step down and one step up in the first dimension, then in the second.
#pragma once

#include "mpi_operation/collective.hpp"

namespace fabricbench {

inline constexpr int neighbours = 4;

struct NeighborAllgather {
  static constexpr const char* name = "MPI_Neighbor_allgather";
  static constexpr CollectiveKind kind = CollectiveKind::moves;
  static constexpr bool on_grid = true;
  static BlockCounts sizes(const Shape&) { return {.sent = 1, .received = neighbours, .counted = neighbours}; }

  static auto arguments(const Operands& operands) {
    return std::tuple(operands.send, operands.count, operands.type, operands.receive, operands.count, operands.type,
                      operands.communicator);
  }
  FABRICBENCH_CALLS(MPI_Neighbor_allgather, MPI_Ineighbor_allgather, MPI_Neighbor_allgather_init)
  static Origin origin(const Shape& shape, int i) { return {.source = shape.neighbours[static_cast<std::size_t>(i)]}; }
};

struct NeighborAlltoall {
  static constexpr const char* name = "MPI_Neighbor_alltoall";
  static constexpr CollectiveKind kind = CollectiveKind::moves;
  static constexpr bool on_grid = true;
  static BlockCounts sizes(const Shape&) { return {.sent = neighbours, .received = neighbours, .counted = neighbours}; }

  static auto arguments(const Operands& operands) {
    return std::tuple(operands.send, operands.count, operands.type, operands.receive, operands.count, operands.type,
                      operands.communicator);
  }
  FABRICBENCH_CALLS(MPI_Neighbor_alltoall, MPI_Ineighbor_alltoall, MPI_Neighbor_alltoall_init)
  /// What comes from below was sent upwards.
  static Origin origin(const Shape& shape, int i) {
    const int opposite = i ^ 1;
    const bool is_narrow = shape.grid[static_cast<std::size_t>(i / 2)] <= 2;
    return {.source = shape.neighbours[static_cast<std::size_t>(i)],
            .block = opposite,
            .other_block = is_narrow ? i : opposite};
  }
};

}  // namespace fabricbench

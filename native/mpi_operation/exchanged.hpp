// Collectives that move blocks from every rank to every rank.
#pragma once

#include "mpi_operation/collective.hpp"

namespace fabricbench {

struct Allgather {
  static constexpr const char* name = "MPI_Allgather";
  static constexpr CollectiveKind kind = CollectiveKind::moves;
  static BlockCounts sizes(const Shape& shape) { return {.sent = 1, .received = shape.ranks, .counted = shape.ranks}; }

  static auto arguments(const Operands& operands) {
    return std::tuple(operands.send, operands.count, operands.type, operands.receive, operands.count, operands.type,
                      operands.communicator);
  }
  FABRICBENCH_CALLS(MPI_Allgather, MPI_Iallgather, MPI_Allgather_init)
  static Origin origin(const Shape&, int i) { return {.source = i}; }
};

struct Allgatherv {
  static constexpr const char* name = "MPI_Allgatherv";
  static constexpr CollectiveKind kind = CollectiveKind::moves;
  static BlockCounts sizes(const Shape& shape) { return {.sent = 1, .received = shape.ranks, .counted = shape.ranks}; }

  static auto arguments(const Operands& operands) {
    return std::tuple(operands.send, operands.count, operands.type, operands.receive, operands.counts,
                      operands.displacements, operands.type, operands.communicator);
  }
  FABRICBENCH_CALLS(MPI_Allgatherv, MPI_Iallgatherv, MPI_Allgatherv_init)
  static Origin origin(const Shape&, int i) { return {.source = i}; }
};

struct Alltoall {
  static constexpr const char* name = "MPI_Alltoall";
  static constexpr CollectiveKind kind = CollectiveKind::moves;
  static BlockCounts sizes(const Shape& shape) {
    return {.sent = shape.ranks, .received = shape.ranks, .counted = shape.ranks};
  }

  static auto arguments(const Operands& operands) {
    return std::tuple(operands.send, operands.count, operands.type, operands.receive, operands.count, operands.type,
                      operands.communicator);
  }
  FABRICBENCH_CALLS(MPI_Alltoall, MPI_Ialltoall, MPI_Alltoall_init)
  static Origin origin(const Shape& shape, int i) {
    return {.source = i, .block = shape.rank, .other_block = shape.rank};
  }
};

struct Alltoallv {
  static constexpr const char* name = "MPI_Alltoallv";
  static constexpr CollectiveKind kind = CollectiveKind::moves;
  static BlockCounts sizes(const Shape& shape) {
    return {.sent = shape.ranks, .received = shape.ranks, .counted = shape.ranks};
  }

  static auto arguments(const Operands& operands) {
    return std::tuple(operands.send, operands.counts, operands.displacements, operands.type, operands.receive,
                      operands.counts, operands.displacements, operands.type, operands.communicator);
  }
  FABRICBENCH_CALLS(MPI_Alltoallv, MPI_Ialltoallv, MPI_Alltoallv_init)
  static Origin origin(const Shape& shape, int i) {
    return {.source = i, .block = shape.rank, .other_block = shape.rank};
  }
};

}  // namespace fabricbench

// Collectives that move blocks from or to the first rank, and the barrier, which moves none.
#pragma once

#include "mpi_operation/collective.hpp"

namespace fabricbench {

struct Barrier {
  static constexpr const char* name = "MPI_Barrier";
  static constexpr CollectiveKind kind = CollectiveKind::moves;
  static BlockCounts sizes(const Shape&) { return {}; }

  static auto arguments(const Operands& operands) { return std::tuple(operands.communicator); }
  FABRICBENCH_CALLS(MPI_Barrier, MPI_Ibarrier, MPI_Barrier_init)
  static Origin origin(const Shape&, int) { return {}; }
};

struct Bcast {
  static constexpr const char* name = "MPI_Bcast";
  static constexpr CollectiveKind kind = CollectiveKind::moves;
  static BlockCounts sizes(const Shape& shape) {
    return {.sent = shape.is_root() ? 1 : 0, .received = shape.is_root() ? 0 : 1, .counted = 1};
  }

  static auto arguments(const Operands& operands) {
    return std::tuple(operands.either, operands.count, operands.type, root, operands.communicator);
  }
  FABRICBENCH_CALLS(MPI_Bcast, MPI_Ibcast, MPI_Bcast_init)
  static Origin origin(const Shape&, int) { return {.source = root}; }
};

struct Gather {
  static constexpr const char* name = "MPI_Gather";
  static constexpr CollectiveKind kind = CollectiveKind::moves;
  static BlockCounts sizes(const Shape& shape) {
    return {.sent = 1, .received = shape.is_root() ? shape.ranks : 0, .counted = shape.ranks};
  }

  static auto arguments(const Operands& operands) {
    return std::tuple(operands.send, operands.count, operands.type, operands.receive, operands.count, operands.type,
                      root, operands.communicator);
  }
  FABRICBENCH_CALLS(MPI_Gather, MPI_Igather, MPI_Gather_init)
  static Origin origin(const Shape&, int i) { return {.source = i}; }
};

struct Gatherv {
  static constexpr const char* name = "MPI_Gatherv";
  static constexpr CollectiveKind kind = CollectiveKind::moves;
  static BlockCounts sizes(const Shape& shape) {
    return {.sent = 1, .received = shape.is_root() ? shape.ranks : 0, .counted = shape.ranks};
  }

  static auto arguments(const Operands& operands) {
    return std::tuple(operands.send, operands.count, operands.type, operands.receive, operands.counts,
                      operands.displacements, operands.type, root, operands.communicator);
  }
  FABRICBENCH_CALLS(MPI_Gatherv, MPI_Igatherv, MPI_Gatherv_init)
  static Origin origin(const Shape&, int i) { return {.source = i}; }
};

struct Scatter {
  static constexpr const char* name = "MPI_Scatter";
  static constexpr CollectiveKind kind = CollectiveKind::moves;
  static BlockCounts sizes(const Shape& shape) {
    return {.sent = shape.is_root() ? shape.ranks : 0, .received = 1, .counted = shape.ranks};
  }

  static auto arguments(const Operands& operands) {
    return std::tuple(operands.send, operands.count, operands.type, operands.receive, operands.count, operands.type,
                      root, operands.communicator);
  }
  FABRICBENCH_CALLS(MPI_Scatter, MPI_Iscatter, MPI_Scatter_init)
  static Origin origin(const Shape& shape, int) {
    return {.source = root, .block = shape.rank, .other_block = shape.rank};
  }
};

struct Scatterv {
  static constexpr const char* name = "MPI_Scatterv";
  static constexpr CollectiveKind kind = CollectiveKind::moves;
  static BlockCounts sizes(const Shape& shape) {
    return {.sent = shape.is_root() ? shape.ranks : 0, .received = 1, .counted = shape.ranks};
  }

  static auto arguments(const Operands& operands) {
    return std::tuple(operands.send, operands.counts, operands.displacements, operands.type, operands.receive,
                      operands.count, operands.type, root, operands.communicator);
  }
  FABRICBENCH_CALLS(MPI_Scatterv, MPI_Iscatterv, MPI_Scatterv_init)
  static Origin origin(const Shape& shape, int) {
    return {.source = root, .block = shape.rank, .other_block = shape.rank};
  }
};

}  // namespace fabricbench

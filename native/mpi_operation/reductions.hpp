// Collectives that sum vectors of doubles.
#pragma once

#include "mpi_operation/collective.hpp"

namespace fabricbench {

struct Reduce {
  static constexpr const char* name = "MPI_Reduce";
  static constexpr CollectiveKind kind = CollectiveKind::sums;
  static BlockCounts sizes(const Shape& shape) {
    return {.sent = 1, .received = shape.is_root() ? 1 : 0, .counted = 1};
  }

  static auto arguments(const Operands& operands) {
    return std::tuple(operands.send, operands.receive, operands.count, operands.type, MPI_SUM, root,
                      operands.communicator);
  }
  FABRICBENCH_CALLS(MPI_Reduce, MPI_Ireduce, MPI_Reduce_init)
  static Summed result(const Shape& shape) { return {.first_ranks = shape.ranks}; }
};

struct Allreduce {
  static constexpr const char* name = "MPI_Allreduce";
  static constexpr CollectiveKind kind = CollectiveKind::sums;
  static BlockCounts sizes(const Shape&) { return {.sent = 1, .received = 1, .counted = 1}; }

  static auto arguments(const Operands& operands) {
    return std::tuple(operands.send, operands.receive, operands.count, operands.type, MPI_SUM, operands.communicator);
  }
  FABRICBENCH_CALLS(MPI_Allreduce, MPI_Iallreduce, MPI_Allreduce_init)
  static Summed result(const Shape& shape) { return {.first_ranks = shape.ranks}; }
};

struct ReduceScatter {
  static constexpr const char* name = "MPI_Reduce_scatter";
  static constexpr CollectiveKind kind = CollectiveKind::sums;
  static BlockCounts sizes(const Shape& shape) { return {.sent = shape.ranks, .received = 1, .counted = shape.ranks}; }

  static auto arguments(const Operands& operands) {
    return std::tuple(operands.send, operands.receive, operands.counts, operands.type, MPI_SUM, operands.communicator);
  }
  FABRICBENCH_CALLS(MPI_Reduce_scatter, MPI_Ireduce_scatter, MPI_Reduce_scatter_init)
  static Summed result(const Shape& shape) { return {.first_ranks = shape.ranks, .block = shape.rank}; }
};

struct ReduceScatterBlock {
  static constexpr const char* name = "MPI_Reduce_scatter_block";
  static constexpr CollectiveKind kind = CollectiveKind::sums;
  static BlockCounts sizes(const Shape& shape) { return {.sent = shape.ranks, .received = 1, .counted = shape.ranks}; }

  static auto arguments(const Operands& operands) {
    return std::tuple(operands.send, operands.receive, operands.count, operands.type, MPI_SUM, operands.communicator);
  }
  FABRICBENCH_CALLS(MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block, MPI_Reduce_scatter_block_init)
  static Summed result(const Shape& shape) { return {.first_ranks = shape.ranks, .block = shape.rank}; }
};

struct Scan {
  static constexpr const char* name = "MPI_Scan";
  static constexpr CollectiveKind kind = CollectiveKind::sums;
  static BlockCounts sizes(const Shape&) { return {.sent = 1, .received = 1, .counted = 1}; }

  static auto arguments(const Operands& operands) {
    return std::tuple(operands.send, operands.receive, operands.count, operands.type, MPI_SUM, operands.communicator);
  }
  FABRICBENCH_CALLS(MPI_Scan, MPI_Iscan, MPI_Scan_init)
  static Summed result(const Shape& shape) { return {.first_ranks = shape.rank + 1}; }
};

struct Exscan {
  static constexpr const char* name = "MPI_Exscan";
  static constexpr CollectiveKind kind = CollectiveKind::sums;
  static BlockCounts sizes(const Shape&) { return {.sent = 1, .received = 1, .counted = 1}; }

  static auto arguments(const Operands& operands) {
    return std::tuple(operands.send, operands.receive, operands.count, operands.type, MPI_SUM, operands.communicator);
  }
  FABRICBENCH_CALLS(MPI_Exscan, MPI_Iexscan, MPI_Exscan_init)
  static Summed result(const Shape& shape) { return {.first_ranks = shape.rank}; }
};

}  // namespace fabricbench

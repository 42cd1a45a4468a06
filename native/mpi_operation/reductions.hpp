// Collectives that sum vectors of doubles.
#pragma once

#include "mpi_operation/collective.hpp"

namespace fabricbench {

struct Reduce {
  static constexpr Pattern pattern = Pattern::reduce;
  static constexpr const char* name = "MPI_Reduce";
  static constexpr CollectiveKind kind = CollectiveKind::sums;
  static BlockCounts sizes(const Shape& shape) {
    return {.sent = 1, .received = shape.is_root() ? 1 : 0, .counted = 1};
  }

  static int call(const Operands& operands) {
    return MPI_Reduce(operands.send, operands.receive, operands.count, operands.type, MPI_SUM, root,
                      operands.communicator);
  }
  static int start(const Operands& operands, MPI_Request* request) {
    return MPI_Ireduce(operands.send, operands.receive, operands.count, operands.type, MPI_SUM, root,
                       operands.communicator, request);
  }
  static int init(const Operands& operands, MPI_Request* request) {
    return FABRICBENCH_MPI4(MPI_Reduce_init(operands.send, operands.receive, operands.count, operands.type, MPI_SUM,
                                            root, operands.communicator, MPI_INFO_NULL, request));
  }
  static Summed result(const Shape& shape) { return {.first_ranks = shape.ranks}; }
};

struct Allreduce {
  static constexpr Pattern pattern = Pattern::allreduce;
  static constexpr const char* name = "MPI_Allreduce";
  static constexpr CollectiveKind kind = CollectiveKind::sums;
  static BlockCounts sizes(const Shape&) { return {.sent = 1, .received = 1, .counted = 1}; }

  static int call(const Operands& operands) {
    return MPI_Allreduce(operands.send, operands.receive, operands.count, operands.type, MPI_SUM,
                         operands.communicator);
  }
  static int start(const Operands& operands, MPI_Request* request) {
    return MPI_Iallreduce(operands.send, operands.receive, operands.count, operands.type, MPI_SUM,
                          operands.communicator, request);
  }
  static int init(const Operands& operands, MPI_Request* request) {
    return FABRICBENCH_MPI4(MPI_Allreduce_init(operands.send, operands.receive, operands.count, operands.type, MPI_SUM,
                                               operands.communicator, MPI_INFO_NULL, request));
  }
  static Summed result(const Shape& shape) { return {.first_ranks = shape.ranks}; }
};

struct ReduceScatter {
  static constexpr Pattern pattern = Pattern::reduce_scatter;
  static constexpr const char* name = "MPI_Reduce_scatter";
  static constexpr CollectiveKind kind = CollectiveKind::sums;
  static BlockCounts sizes(const Shape& shape) { return {.sent = shape.ranks, .received = 1, .counted = shape.ranks}; }

  static int call(const Operands& operands) {
    return MPI_Reduce_scatter(operands.send, operands.receive, operands.counts, operands.type, MPI_SUM,
                              operands.communicator);
  }
  static int start(const Operands& operands, MPI_Request* request) {
    return MPI_Ireduce_scatter(operands.send, operands.receive, operands.counts, operands.type, MPI_SUM,
                               operands.communicator, request);
  }
  static int init(const Operands& operands, MPI_Request* request) {
    return FABRICBENCH_MPI4(MPI_Reduce_scatter_init(operands.send, operands.receive, operands.counts, operands.type,
                                                    MPI_SUM, operands.communicator, MPI_INFO_NULL, request));
  }
  static Summed result(const Shape& shape) { return {.first_ranks = shape.ranks, .block = shape.rank}; }
};

struct ReduceScatterBlock {
  static constexpr Pattern pattern = Pattern::reduce_scatter_block;
  static constexpr const char* name = "MPI_Reduce_scatter_block";
  static constexpr CollectiveKind kind = CollectiveKind::sums;
  static BlockCounts sizes(const Shape& shape) { return {.sent = shape.ranks, .received = 1, .counted = shape.ranks}; }

  static int call(const Operands& operands) {
    return MPI_Reduce_scatter_block(operands.send, operands.receive, operands.count, operands.type, MPI_SUM,
                                    operands.communicator);
  }
  static int start(const Operands& operands, MPI_Request* request) {
    return MPI_Ireduce_scatter_block(operands.send, operands.receive, operands.count, operands.type, MPI_SUM,
                                     operands.communicator, request);
  }
  static int init(const Operands& operands, MPI_Request* request) {
    return FABRICBENCH_MPI4(MPI_Reduce_scatter_block_init(operands.send, operands.receive, operands.count,
                                                          operands.type, MPI_SUM, operands.communicator, MPI_INFO_NULL,
                                                          request));
  }
  static Summed result(const Shape& shape) { return {.first_ranks = shape.ranks, .block = shape.rank}; }
};

struct Scan {
  static constexpr Pattern pattern = Pattern::scan;
  static constexpr const char* name = "MPI_Scan";
  static constexpr CollectiveKind kind = CollectiveKind::sums;
  static BlockCounts sizes(const Shape&) { return {.sent = 1, .received = 1, .counted = 1}; }

  static int call(const Operands& operands) {
    return MPI_Scan(operands.send, operands.receive, operands.count, operands.type, MPI_SUM, operands.communicator);
  }
  static int start(const Operands& operands, MPI_Request* request) {
    return MPI_Iscan(operands.send, operands.receive, operands.count, operands.type, MPI_SUM, operands.communicator,
                     request);
  }
  static int init(const Operands& operands, MPI_Request* request) {
    return FABRICBENCH_MPI4(MPI_Scan_init(operands.send, operands.receive, operands.count, operands.type, MPI_SUM,
                                          operands.communicator, MPI_INFO_NULL, request));
  }
  static Summed result(const Shape& shape) { return {.first_ranks = shape.rank + 1}; }
};

struct Exscan {
  static constexpr Pattern pattern = Pattern::exscan;
  static constexpr const char* name = "MPI_Exscan";
  static constexpr CollectiveKind kind = CollectiveKind::sums;
  static BlockCounts sizes(const Shape&) { return {.sent = 1, .received = 1, .counted = 1}; }

  static int call(const Operands& operands) {
    return MPI_Exscan(operands.send, operands.receive, operands.count, operands.type, MPI_SUM, operands.communicator);
  }
  static int start(const Operands& operands, MPI_Request* request) {
    return MPI_Iexscan(operands.send, operands.receive, operands.count, operands.type, MPI_SUM, operands.communicator,
                       request);
  }
  static int init(const Operands& operands, MPI_Request* request) {
    return FABRICBENCH_MPI4(MPI_Exscan_init(operands.send, operands.receive, operands.count, operands.type, MPI_SUM,
                                            operands.communicator, MPI_INFO_NULL, request));
  }
  static Summed result(const Shape& shape) { return {.first_ranks = shape.rank}; }
};

}  // namespace fabricbench

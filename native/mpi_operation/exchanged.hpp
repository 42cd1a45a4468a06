// Collectives that move blocks from every rank to every rank.
#pragma once

#include "mpi_operation/collective.hpp"

namespace fabricbench {

struct Allgather {
  static constexpr Pattern pattern = Pattern::allgather;
  static constexpr const char* name = "MPI_Allgather";
  static constexpr CollectiveKind kind = CollectiveKind::moves;
  static BlockCounts sizes(const Shape& shape) { return {.sent = 1, .received = shape.ranks, .counted = shape.ranks}; }

  static int call(const Operands& operands) {
    return MPI_Allgather(operands.send, operands.count, operands.type, operands.receive, operands.count, operands.type,
                         operands.communicator);
  }
  static int start(const Operands& operands, MPI_Request* request) {
    return MPI_Iallgather(operands.send, operands.count, operands.type, operands.receive, operands.count, operands.type,
                          operands.communicator, request);
  }
  static int init(const Operands& operands, MPI_Request* request) {
    return FABRICBENCH_MPI4(MPI_Allgather_init(operands.send, operands.count, operands.type, operands.receive,
                                               operands.count, operands.type, operands.communicator, MPI_INFO_NULL,
                                               request));
  }
  static Origin origin(const Shape&, int i) { return {.source = i}; }
};

struct Allgatherv {
  static constexpr Pattern pattern = Pattern::allgatherv;
  static constexpr const char* name = "MPI_Allgatherv";
  static constexpr CollectiveKind kind = CollectiveKind::moves;
  static BlockCounts sizes(const Shape& shape) { return {.sent = 1, .received = shape.ranks, .counted = shape.ranks}; }

  static int call(const Operands& operands) {
    return MPI_Allgatherv(operands.send, operands.count, operands.type, operands.receive, operands.counts,
                          operands.displacements, operands.type, operands.communicator);
  }
  static int start(const Operands& operands, MPI_Request* request) {
    return MPI_Iallgatherv(operands.send, operands.count, operands.type, operands.receive, operands.counts,
                           operands.displacements, operands.type, operands.communicator, request);
  }
  static int init(const Operands& operands, MPI_Request* request) {
    return FABRICBENCH_MPI4(MPI_Allgatherv_init(operands.send, operands.count, operands.type, operands.receive,
                                                operands.counts, operands.displacements, operands.type,
                                                operands.communicator, MPI_INFO_NULL, request));
  }
  static Origin origin(const Shape&, int i) { return {.source = i}; }
};

struct Alltoall {
  static constexpr Pattern pattern = Pattern::alltoall;
  static constexpr const char* name = "MPI_Alltoall";
  static constexpr CollectiveKind kind = CollectiveKind::moves;
  static BlockCounts sizes(const Shape& shape) {
    return {.sent = shape.ranks, .received = shape.ranks, .counted = shape.ranks};
  }

  static int call(const Operands& operands) {
    return MPI_Alltoall(operands.send, operands.count, operands.type, operands.receive, operands.count, operands.type,
                        operands.communicator);
  }
  static int start(const Operands& operands, MPI_Request* request) {
    return MPI_Ialltoall(operands.send, operands.count, operands.type, operands.receive, operands.count, operands.type,
                         operands.communicator, request);
  }
  static int init(const Operands& operands, MPI_Request* request) {
    return FABRICBENCH_MPI4(MPI_Alltoall_init(operands.send, operands.count, operands.type, operands.receive,
                                              operands.count, operands.type, operands.communicator, MPI_INFO_NULL,
                                              request));
  }
  static Origin origin(const Shape& shape, int i) {
    return {.source = i, .block = shape.rank, .other_block = shape.rank};
  }
};

struct Alltoallv {
  static constexpr Pattern pattern = Pattern::alltoallv;
  static constexpr const char* name = "MPI_Alltoallv";
  static constexpr CollectiveKind kind = CollectiveKind::moves;
  static BlockCounts sizes(const Shape& shape) {
    return {.sent = shape.ranks, .received = shape.ranks, .counted = shape.ranks};
  }

  static int call(const Operands& operands) {
    return MPI_Alltoallv(operands.send, operands.counts, operands.displacements, operands.type, operands.receive,
                         operands.counts, operands.displacements, operands.type, operands.communicator);
  }
  static int start(const Operands& operands, MPI_Request* request) {
    return MPI_Ialltoallv(operands.send, operands.counts, operands.displacements, operands.type, operands.receive,
                          operands.counts, operands.displacements, operands.type, operands.communicator, request);
  }
  static int init(const Operands& operands, MPI_Request* request) {
    return FABRICBENCH_MPI4(MPI_Alltoallv_init(operands.send, operands.counts, operands.displacements, operands.type,
                                               operands.receive, operands.counts, operands.displacements, operands.type,
                                               operands.communicator, MPI_INFO_NULL, request));
  }
  static Origin origin(const Shape& shape, int i) {
    return {.source = i, .block = shape.rank, .other_block = shape.rank};
  }
};

}  // namespace fabricbench

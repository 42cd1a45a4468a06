// Collectives that move blocks from or to the first rank, and the barrier, which moves none.
#pragma once

#include "mpi_operation/collective.hpp"

namespace fabricbench {

struct Barrier {
  static constexpr Pattern pattern = Pattern::barrier;
  static constexpr const char* name = "MPI_Barrier";
  static constexpr CollectiveKind kind = CollectiveKind::moves;
  static BlockCounts sizes(const Shape&) { return {}; }

  static int call(const Operands& operands) { return MPI_Barrier(operands.communicator); }
  static int start(const Operands& operands, MPI_Request* request) {
    return MPI_Ibarrier(operands.communicator, request);
  }
  static int init(const Operands& operands, MPI_Request* request) {
    return FABRICBENCH_MPI4(MPI_Barrier_init(operands.communicator, MPI_INFO_NULL, request));
  }
  static Origin origin(const Shape&, int) { return {}; }
};

struct Bcast {
  static constexpr Pattern pattern = Pattern::bcast;
  static constexpr const char* name = "MPI_Bcast";
  static constexpr CollectiveKind kind = CollectiveKind::moves;
  static BlockCounts sizes(const Shape& shape) {
    return {.sent = shape.is_root() ? 1 : 0, .received = shape.is_root() ? 0 : 1, .counted = 1};
  }

  static int call(const Operands& operands) {
    return MPI_Bcast(operands.either, operands.count, operands.type, root, operands.communicator);
  }
  static int start(const Operands& operands, MPI_Request* request) {
    return MPI_Ibcast(operands.either, operands.count, operands.type, root, operands.communicator, request);
  }
  static int init(const Operands& operands, MPI_Request* request) {
    return FABRICBENCH_MPI4(MPI_Bcast_init(operands.either, operands.count, operands.type, root, operands.communicator,
                                           MPI_INFO_NULL, request));
  }
  static Origin origin(const Shape&, int) { return {.source = root}; }
};

struct Gather {
  static constexpr Pattern pattern = Pattern::gather;
  static constexpr const char* name = "MPI_Gather";
  static constexpr CollectiveKind kind = CollectiveKind::moves;
  static BlockCounts sizes(const Shape& shape) {
    return {.sent = 1, .received = shape.is_root() ? shape.ranks : 0, .counted = shape.ranks};
  }

  static int call(const Operands& operands) {
    return MPI_Gather(operands.send, operands.count, operands.type, operands.receive, operands.count, operands.type,
                      root, operands.communicator);
  }
  static int start(const Operands& operands, MPI_Request* request) {
    return MPI_Igather(operands.send, operands.count, operands.type, operands.receive, operands.count, operands.type,
                       root, operands.communicator, request);
  }
  static int init(const Operands& operands, MPI_Request* request) {
    return FABRICBENCH_MPI4(MPI_Gather_init(operands.send, operands.count, operands.type, operands.receive,
                                            operands.count, operands.type, root, operands.communicator, MPI_INFO_NULL,
                                            request));
  }
  static Origin origin(const Shape&, int i) { return {.source = i}; }
};

struct Gatherv {
  static constexpr Pattern pattern = Pattern::gatherv;
  static constexpr const char* name = "MPI_Gatherv";
  static constexpr CollectiveKind kind = CollectiveKind::moves;
  static BlockCounts sizes(const Shape& shape) {
    return {.sent = 1, .received = shape.is_root() ? shape.ranks : 0, .counted = shape.ranks};
  }

  static int call(const Operands& operands) {
    return MPI_Gatherv(operands.send, operands.count, operands.type, operands.receive, operands.counts,
                       operands.displacements, operands.type, root, operands.communicator);
  }
  static int start(const Operands& operands, MPI_Request* request) {
    return MPI_Igatherv(operands.send, operands.count, operands.type, operands.receive, operands.counts,
                        operands.displacements, operands.type, root, operands.communicator, request);
  }
  static int init(const Operands& operands, MPI_Request* request) {
    return FABRICBENCH_MPI4(MPI_Gatherv_init(operands.send, operands.count, operands.type, operands.receive,
                                             operands.counts, operands.displacements, operands.type, root,
                                             operands.communicator, MPI_INFO_NULL, request));
  }
  static Origin origin(const Shape&, int i) { return {.source = i}; }
};

struct Scatter {
  static constexpr Pattern pattern = Pattern::scatter;
  static constexpr const char* name = "MPI_Scatter";
  static constexpr CollectiveKind kind = CollectiveKind::moves;
  static BlockCounts sizes(const Shape& shape) {
    return {.sent = shape.is_root() ? shape.ranks : 0, .received = 1, .counted = shape.ranks};
  }

  static int call(const Operands& operands) {
    return MPI_Scatter(operands.send, operands.count, operands.type, operands.receive, operands.count, operands.type,
                       root, operands.communicator);
  }
  static int start(const Operands& operands, MPI_Request* request) {
    return MPI_Iscatter(operands.send, operands.count, operands.type, operands.receive, operands.count, operands.type,
                        root, operands.communicator, request);
  }
  static int init(const Operands& operands, MPI_Request* request) {
    return FABRICBENCH_MPI4(MPI_Scatter_init(operands.send, operands.count, operands.type, operands.receive,
                                             operands.count, operands.type, root, operands.communicator, MPI_INFO_NULL,
                                             request));
  }
  static Origin origin(const Shape& shape, int) {
    return {.source = root, .block = shape.rank, .other_block = shape.rank};
  }
};

struct Scatterv {
  static constexpr Pattern pattern = Pattern::scatterv;
  static constexpr const char* name = "MPI_Scatterv";
  static constexpr CollectiveKind kind = CollectiveKind::moves;
  static BlockCounts sizes(const Shape& shape) {
    return {.sent = shape.is_root() ? shape.ranks : 0, .received = 1, .counted = shape.ranks};
  }

  static int call(const Operands& operands) {
    return MPI_Scatterv(operands.send, operands.counts, operands.displacements, operands.type, operands.receive,
                        operands.count, operands.type, root, operands.communicator);
  }
  static int start(const Operands& operands, MPI_Request* request) {
    return MPI_Iscatterv(operands.send, operands.counts, operands.displacements, operands.type, operands.receive,
                         operands.count, operands.type, root, operands.communicator, request);
  }
  static int init(const Operands& operands, MPI_Request* request) {
    return FABRICBENCH_MPI4(MPI_Scatterv_init(operands.send, operands.counts, operands.displacements, operands.type,
                                              operands.receive, operands.count, operands.type, root,
                                              operands.communicator, MPI_INFO_NULL, request));
  }
  static Origin origin(const Shape& shape, int) {
    return {.source = root, .block = shape.rank, .other_block = shape.rank};
  }
};

}  // namespace fabricbench

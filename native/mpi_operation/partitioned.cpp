// partitioned: a message there and one back, each made ready part by part (MPI_Psend_init, MPI_Precv_init, MPI_Pready).
// Only one thread makes the parts ready, so this is what partitioning itself costs.
#include <array>
#include <limits>

#include "core/message_buffer.hpp"
#include "mpi_operation/collective.hpp"
#include "mpi_operation/conductor.hpp"
#include "mpi_operation/contents.hpp"
#include "mpi_operation/operation.hpp"
#include "pattern/parameters.hpp"

namespace fabricbench {

#if MPI_VERSION >= 4
namespace {

class PartitionedPath {
 public:
  PartitionedPath(MPI_Comm communicator, const PlanProbe& probe)
      : partitions_(static_cast<int>(whole_parameter(probe, "partitions"))),
        send_(checked_bytes(probe, partitions_)),
        receive_(probe.message_bytes) {
    int rank = 0;
    MPI_Comm_rank(communicator, &rank);
    const auto part = static_cast<MPI_Count>(probe.message_bytes) / partitions_;
    constexpr int tag = 2;
    check_mpi(MPI_Psend_init(send_.data(), partitions_, part, MPI_BYTE, 1 - rank, tag, communicator, MPI_INFO_NULL,
                             &requests_[0]),
              "MPI_Psend_init");
    check_mpi(MPI_Precv_init(receive_.data(), partitions_, part, MPI_BYTE, 1 - rank, tag, communicator, MPI_INFO_NULL,
                             &requests_[1]),
              "MPI_Precv_init");
  }
  ~PartitionedPath() {
    for (MPI_Request& request : requests_) {
      if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
    }
  }
  PartitionedPath(const PartitionedPath&) = delete;
  PartitionedPath& operator=(const PartitionedPath&) = delete;

  std::span<std::byte> sent() { return send_.span(); }
  std::span<std::byte> received() { return receive_.span(); }

  /// The first rank's part: there, and back.
  int ask() {
    int error = MPI_Startall(2, requests_.data());
    if (error == MPI_SUCCESS) error = send_parts();
    return error == MPI_SUCCESS ? MPI_Waitall(2, requests_.data(), MPI_STATUSES_IGNORE) : error;
  }
  int answer() {
    int error = MPI_Startall(2, requests_.data());
    if (error == MPI_SUCCESS) error = MPI_Wait(&requests_[1], MPI_STATUS_IGNORE);
    if (error == MPI_SUCCESS) error = send_parts();
    return error == MPI_SUCCESS ? MPI_Wait(&requests_[0], MPI_STATUS_IGNORE) : error;
  }

 private:
  static std::size_t checked_bytes(const PlanProbe& probe, int partitions) {
    const std::size_t bytes = probe.message_bytes;
    if (bytes > 0 && bytes % static_cast<std::size_t>(partitions) == 0) return bytes;
    throw Failure(FailureCode::unsupported, "message_bytes must be a multiple of the " + std::to_string(partitions) +
                                                " partitions, found " + std::to_string(bytes));
  }

  int send_parts() {
    int error = MPI_SUCCESS;
    for (int part = 0; part < partitions_ && error == MPI_SUCCESS; ++part) error = MPI_Pready(part, requests_[0]);
    return error;
  }

  int partitions_;
  MessageBuffer send_;
  MessageBuffer receive_;
  std::array<MPI_Request, 2> requests_{MPI_REQUEST_NULL, MPI_REQUEST_NULL};
};

}  // namespace

void Partitioned::verify(MPI_Comm communicator, Task& task) {
  PartitionedPath path(communicator, task.probe);
  const std::uint64_t own = task.team.member();
  for (std::uint64_t turn = 0; turn < task.probe.verify_messages; ++turn) {
    fill_block(path.sent(), {own, 0, turn});
    wipe(path.received());
    check_mpi(own == 0 ? path.ask() : path.answer(), "a partitioned message");
    count_result(task.counters, is_block(path.received(), {1 - own, 0, turn}));
  }
}

Outcome Partitioned::run(MPI_Comm communicator, Task& task) {
  PartitionedPath path(communicator, task.probe);
  const bool is_first = task.team.member() == 0;
  const auto ask = [&] { return path.ask(); };
  const auto answer = [&] { return path.answer(); };
  Conductor conductor(communicator, task, [&](const CallOrder& order, CallTimes& times) {
    if (is_first) return take_calls(ask, order, task.clock, times);
    take_calls(answer, order, task.clock, times);
    times.forget_times();
  });
  Outcome outcome = conductor.run({});
  outcome.bytes_per_sample = 2 * task.probe.message_bytes;
  return outcome;
}

#else

namespace {

[[noreturn]] void refuse() {
  throw Failure(FailureCode::unsupported,
                "partitioned communication came with MPI 4, this measurer was built with MPI " +
                    std::to_string(MPI_VERSION) + ": build it with a newer library");
}

}  // namespace

void Partitioned::verify(MPI_Comm, Task&) { refuse(); }
Outcome Partitioned::run(MPI_Comm, Task&) { refuse(); }

#endif

}  // namespace fabricbench

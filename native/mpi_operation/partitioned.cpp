// partitioned: a message there and one back, each made ready part by part (MPI_Psend_init, MPI_Precv_init, MPI_Pready).
// Only one thread makes the parts ready, so this is what partitioning itself costs.
#include <array>
#include <limits>

#include "core/message_buffer.hpp"
#include "core/parameters.hpp"
#include "core/set_aside.hpp"
#include "mpi_operation/collective.hpp"
#include "mpi_operation/conductor.hpp"
#include "mpi_operation/contents.hpp"
#include "mpi_operation/operation.hpp"

namespace fabricbench {

#if MPI_VERSION >= 4
namespace {

std::size_t checked_bytes(const PlanProbe& probe, int partitions) {
  const std::size_t bytes = probe.message_bytes;
  if (bytes > 0 && bytes % static_cast<std::size_t>(partitions) == 0) return bytes;
  throw Failure(FailureCode::unsupported, "message_bytes must be a multiple of the " + std::to_string(partitions) +
                                              " partitions, found " + std::to_string(bytes));
}

class PartitionedCell : public PreparedOperation {
 public:
  PartitionedCell(MPI_Comm communicator, Task& task)
      : communicator_(communicator),
        task_(task),
        partitions_(static_cast<int>(whole_parameter(task.probe, "partitions"))),
        send_(task.allocate(checked_bytes(task.probe, partitions_))),
        receive_(task.allocate(task.probe.message_bytes)) {}
  ~PartitionedCell() override {
    release(requests_[0], send_.keeper());
    release(requests_[1], receive_.keeper());
  }
  PartitionedCell(const PartitionedCell&) = delete;
  PartitionedCell& operator=(const PartitionedCell&) = delete;

  void open() override {
    const auto part = static_cast<MPI_Count>(task_.probe.message_bytes) / partitions_;
    const int peer = is_first() ? 1 : 0;
    constexpr int tag = 2;
    check_mpi(MPI_Psend_init(send_.data(), partitions_, part, MPI_BYTE, peer, tag, communicator_, MPI_INFO_NULL,
                             &requests_[0]),
              "MPI_Psend_init");
    check_mpi(MPI_Precv_init(receive_.data(), partitions_, part, MPI_BYTE, peer, tag, communicator_, MPI_INFO_NULL,
                             &requests_[1]),
              "MPI_Precv_init");
  }

  void verify() override {
    const std::uint64_t own = task_.team.member();
    for (std::uint64_t turn = 0; turn < task_.probe.verify_messages; ++turn) {
      fill_block(send_.span(), {own, 0, turn});
      wipe(receive_.span());
      check_mpi(is_first() ? ask() : answer(), "a partitioned message");
      count_result(task_.counters, is_block(receive_.span(), {1 - own, 0, turn}));
    }
  }

  Outcome run() override {
    const auto ask_once = [this] { return ask(); };
    const auto answer_once = [this] { return answer(); };
    Conductor conductor(communicator_, task_, [&](const CallOrder& order, CallTimes& times) {
      if (is_first()) return take_calls(ask_once, order, task_.clock, times);
      take_calls(answer_once, order, task_.clock, times);
      times.forget_times();
    });
    Outcome outcome = conductor.run({});
    outcome.bytes_per_sample = 2 * task_.probe.message_bytes;
    return outcome;
  }

 private:
  bool is_first() const { return task_.team.member() == 0; }

  /// Free a request; one that a call which failed has left under way keeps its memory.
  static void release(MPI_Request request, std::shared_ptr<const void> memory) {
    int is_done = 0;
    if (MPI_Test(&request, &is_done, MPI_STATUS_IGNORE) == MPI_SUCCESS && is_done == 0) {
      set_aside(request, std::move(memory));
    } else if (request != MPI_REQUEST_NULL) {
      MPI_Request_free(&request);
    }
  }

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

  int send_parts() {
    int error = MPI_SUCCESS;
    for (int part = 0; part < partitions_ && error == MPI_SUCCESS; ++part) error = MPI_Pready(part, requests_[0]);
    return error;
  }

  MPI_Comm communicator_;
  Task& task_;
  int partitions_;
  MessageBuffer send_;
  MessageBuffer receive_;
  std::array<MPI_Request, 2> requests_{MPI_REQUEST_NULL, MPI_REQUEST_NULL};
};

}  // namespace

std::unique_ptr<PreparedOperation> Partitioned::prepare(MPI_Comm communicator, Task& task) {
  return std::make_unique<PartitionedCell>(communicator, task);
}

#else

std::unique_ptr<PreparedOperation> Partitioned::prepare(MPI_Comm, Task&) {
  throw Failure(FailureCode::unsupported,
                "partitioned communication came with MPI 4, this measurer was built with MPI " +
                    std::to_string(MPI_VERSION) + ": build it with a newer library");
}

#endif

}  // namespace fabricbench

// threaded: several threads of two ranks, each with its counterpart: a message there and one back. All begin at the
// same time; the operation lasts until the last thread has its answer. Each pair of threads has a communicator of its
// own, so that a library may serve them apart.
#include <limits>
#include <system_error>
#include <thread>

#include "core/message_buffer.hpp"
#include "core/parameters.hpp"
#include "mpi_operation/conductor.hpp"
#include "mpi_operation/contents.hpp"
#include "mpi_operation/operation.hpp"

namespace fabricbench {
namespace {

/// What one thread works with.
class ThreadPath {
 public:
  explicit ThreadPath(const Task& task)
      : send_(task.allocate(task.probe.message_bytes)),
        receive_(task.allocate(task.probe.message_bytes)),
        count_(static_cast<int>(task.probe.message_bytes)),
        peer_(task.team.member() == 0 ? 1 : 0) {}
  ThreadPath(const ThreadPath&) = delete;
  ThreadPath& operator=(const ThreadPath&) = delete;

  /// Collective.
  void open(MPI_Comm communicator) { check_mpi(MPI_Comm_dup(communicator, &communicator_), "MPI_Comm_dup"); }
  void close() {
    if (communicator_ != MPI_COMM_NULL) MPI_Comm_free(&communicator_);
  }

  std::span<std::byte> sent() { return send_.span(); }
  std::span<std::byte> received() { return receive_.span(); }

  int ask() {
    const int error = MPI_Send(send_.data(), count_, MPI_BYTE, peer_, tag, communicator_);
    return error == MPI_SUCCESS ? receive() : error;
  }
  int answer() {
    const int error = receive();
    return error == MPI_SUCCESS ? MPI_Send(send_.data(), count_, MPI_BYTE, peer_, tag, communicator_) : error;
  }

 private:
  static constexpr int tag = 3;
  int receive() { return MPI_Recv(receive_.data(), count_, MPI_BYTE, peer_, tag, communicator_, MPI_STATUS_IGNORE); }

  MPI_Comm communicator_ = MPI_COMM_NULL;
  MessageBuffer send_;
  MessageBuffer receive_;
  int count_;
  int peer_;
};

class ThreadedCell : public PreparedOperation {
 public:
  ThreadedCell(MPI_Comm communicator, Task& task) : communicator_(communicator), task_(task) {
    require_threads();
    const std::size_t bytes = task.probe.message_bytes;
    const auto most = static_cast<std::size_t>(std::numeric_limits<int>::max());
    if (bytes == 0 || bytes > most) {
      throw Failure(FailureCode::unsupported, "message_bytes must be from 1 to " + std::to_string(most));
    }
    const auto threads = whole_parameter(task.probe, "threads");
    for (std::uint64_t i = 0; i < threads; ++i) paths_.push_back(std::make_unique<ThreadPath>(task));
  }

  void open() override {
    for (const auto& path : paths_) path->open(communicator_);
  }

  void verify() override {
    const std::uint64_t own = task_.team.member();
    for (std::uint64_t turn = 0; turn < task_.probe.verify_messages; ++turn) {
      std::vector<int> errors(paths_.size());
      at_once([&](std::size_t i, ThreadPath& path) {
        fill_block(path.sent(), {own, i, turn});
        wipe(path.received());
        errors[i] = own == 0 ? path.ask() : path.answer();
      });
      for (std::size_t i = 0; i < paths_.size(); ++i) {
        check_mpi(errors[i], "a message of a thread");
        count_result(task_.counters, is_block(paths_[i]->received(), {1 - own, i, turn}));
      }
    }
  }

  Outcome run() override {
    const bool is_first = task_.team.member() == 0;
    Conductor conductor(
        communicator_, task_,
        [&](const CallOrder& order, CallTimes& times) {
          std::vector<CallTimes> each(paths_.size(), CallTimes(order.calls));
          at_once([&](std::size_t i, ThreadPath& path) {
            const auto ask = [&] { return path.ask(); };
            const auto answer = [&] { return path.answer(); };
            if (is_first) {
              take_calls(ask, order, task_.clock, each[i]);
            } else {
              take_calls(answer, order, task_.clock, each[i]);
            }
          });
          for (const CallTimes& one : each) times.take_slowest(one);
          if (!is_first) times.forget_times();
        },
        static_cast<int>(paths_.size()));
    Outcome outcome = conductor.run({});
    outcome.bytes_per_sample = 2 * paths_.size() * task_.probe.message_bytes;
    return outcome;
  }

  void close() override {
    for (const auto& path : paths_) path->close();
  }

 private:
  static void require_threads() {
    int provided = MPI_THREAD_SINGLE;
    MPI_Query_thread(&provided);
    if (provided == MPI_THREAD_MULTIPLE) return;
    throw Failure(FailureCode::unsupported,
                  "MPI does not let several threads call it here (MPI_THREAD_MULTIPLE): either the library was built "
                  "without, or fabricbench-probe was started without --threads, which asks for it");
  }

  /// Do something with each path in a thread of its own, all at once.
  template <class Action>
  void at_once(Action action) {
    std::vector<std::jthread> threads;
    try {
      for (std::size_t i = 0; i < paths_.size(); ++i) threads.emplace_back([&, i] { action(i, *paths_[i]); });
    } catch (const std::system_error& error) {
      // Those that run wait for counterparts that never come.
      std::fprintf(stderr, "fabricbench-probe: cannot start a thread (%s)\n", error.what());
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
  }

  MPI_Comm communicator_;
  Task& task_;
  std::vector<std::unique_ptr<ThreadPath>> paths_;
};

}  // namespace

std::unique_ptr<PreparedOperation> Threaded::prepare(MPI_Comm communicator, Task& task) {
  return std::make_unique<ThreadedCell>(communicator, task);
}

}  // namespace fabricbench

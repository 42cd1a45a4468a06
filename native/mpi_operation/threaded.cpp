// threaded: several threads of two ranks, each with its counterpart: a message there and one back. All begin at the
// same time; the operation lasts until the last thread has its answer. Each pair of threads has a communicator of its
// own, so that a library may serve them apart.
#include <limits>
#include <system_error>
#include <thread>

#include "core/message_buffer.hpp"
#include "mpi_operation/conductor.hpp"
#include "mpi_operation/contents.hpp"
#include "mpi_operation/operation.hpp"
#include "pattern/parameters.hpp"

namespace fabricbench {
namespace {

/// What one thread works with.
class ThreadPath {
 public:
  ThreadPath(MPI_Comm communicator, std::size_t message_bytes, std::size_t own)
      : send_(message_bytes),
        receive_(message_bytes),
        count_(static_cast<int>(message_bytes)),
        peer_(static_cast<int>(1 - own)) {
    check_mpi(MPI_Comm_dup(communicator, &communicator_), "MPI_Comm_dup");
  }
  ~ThreadPath() { MPI_Comm_free(&communicator_); }
  ThreadPath(const ThreadPath&) = delete;
  ThreadPath& operator=(const ThreadPath&) = delete;

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

class ThreadedPaths {
 public:
  ThreadedPaths(MPI_Comm communicator, const Task& task) {
    const PlanProbe& probe = task.probe;
    require_threads();
    const int threads = static_cast<int>(whole_parameter(probe, "threads"));
    const auto most = static_cast<std::size_t>(std::numeric_limits<int>::max());
    if (probe.message_bytes == 0 || probe.message_bytes > most) {
      throw Failure(FailureCode::unsupported, "message_bytes must be from 1 to " + std::to_string(most));
    }
    for (int i = 0; i < threads; ++i) {
      paths_.push_back(std::make_unique<ThreadPath>(communicator, probe.message_bytes, task.team.member()));
    }
  }

  std::size_t size() const { return paths_.size(); }
  ThreadPath& operator[](std::size_t i) { return *paths_[i]; }

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

 private:
  static void require_threads() {
    int provided = MPI_THREAD_SINGLE;
    MPI_Query_thread(&provided);
    if (provided == MPI_THREAD_MULTIPLE) return;
    throw Failure(FailureCode::unsupported,
                  "MPI does not let several threads call it here (MPI_THREAD_MULTIPLE): either the library was built "
                  "without, or fabricbench-probe was started without --threads, which asks for it");
  }

  std::vector<std::unique_ptr<ThreadPath>> paths_;
};

}  // namespace

void Threaded::verify(MPI_Comm communicator, Task& task) {
  ThreadedPaths paths(communicator, task);
  const std::uint64_t own = task.team.member();
  for (std::uint64_t turn = 0; turn < task.probe.verify_messages; ++turn) {
    std::vector<int> errors(paths.size());
    paths.at_once([&](std::size_t i, ThreadPath& path) {
      fill_block(path.sent(), {own, i, turn});
      wipe(path.received());
      errors[i] = own == 0 ? path.ask() : path.answer();
    });
    for (std::size_t i = 0; i < paths.size(); ++i) {
      check_mpi(errors[i], "a message of a thread");
      count_result(task.counters, is_block(paths[i].received(), {1 - own, i, turn}));
    }
  }
}

Outcome Threaded::run(MPI_Comm communicator, Task& task) {
  ThreadedPaths paths(communicator, task);
  const bool is_first = task.team.member() == 0;
  Conductor conductor(
      communicator, task,
      [&](const CallOrder& order, CallTimes& times) {
        std::vector<CallTimes> each(paths.size(), CallTimes(order.calls));
        paths.at_once([&](std::size_t i, ThreadPath& path) {
          const auto ask = [&] { return path.ask(); };
          const auto answer = [&] { return path.answer(); };
          if (is_first) {
            take_calls(ask, order, task.clock, each[i]);
          } else {
            take_calls(answer, order, task.clock, each[i]);
          }
        });
        for (const CallTimes& one : each) times.take_slowest(one);
        if (!is_first) times.forget_times();
      },
      static_cast<int>(paths.size()));
  Outcome outcome = conductor.run({});
  outcome.bytes_per_sample = 2 * paths.size() * task.probe.message_bytes;
  return outcome;
}

}  // namespace fabricbench

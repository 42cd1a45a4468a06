// A cell of a collective: verification and timing, written once for all collectives and modes.
#pragma once

#include <time.h>

#include <concepts>
#include <optional>
#include <tuple>
#include <type_traits>

#include "base/failure.hpp"
#include "core/parameters.hpp"
#include "mpi_operation/collective.hpp"
#include "mpi_operation/conductor.hpp"
#include "mpi_operation/contents.hpp"
#include "mpi_operation/operation.hpp"

namespace fabricbench {

template <class Op>
struct BlockingCall {
  const Operands& operands;
  int operator()() { return Op::call(operands); }
};

template <class Op>
struct NonblockingCall {
  const Operands& operands;
  MPI_Request request = MPI_REQUEST_NULL;
  int operator()() {
    const int error = Op::start(operands, &request);
    return error == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : error;
  }
};

template <class Op>
struct OverlappedCall {
  const Operands& operands;
  const Computing& computing;
  MPI_Request request = MPI_REQUEST_NULL;
  int operator()() {
    const int error = Op::start(operands, &request);
    computing();
    return error == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : error;
  }
};

/// Made once, then started again and again.
template <class Op>
class PersistentCall {
 public:
  explicit PersistentCall(const Operands& operands) { check_mpi(Op::init(operands, &request_), Op::name); }
  ~PersistentCall() {
    if (request_ != MPI_REQUEST_NULL) MPI_Request_free(&request_);
  }
  PersistentCall(const PersistentCall&) = delete;
  PersistentCall& operator=(const PersistentCall&) = delete;

  int operator()() {
    const int error = MPI_Start(&request_);
    return error == MPI_SUCCESS ? MPI_Wait(&request_, MPI_STATUS_IGNORE) : error;
  }

 private:
  MPI_Request request_ = MPI_REQUEST_NULL;
};

template <class Op>
concept OnGrid = Op::on_grid;

template <class... Arguments>
consteval int count_int_arrays(std::tuple<Arguments...> (*)(const Operands&)) {
  return (0 + ... + int{std::is_same_v<Arguments, const int*>});
}

/// Whether the call is told where each block lies: displacements stand beside counts, which stand alone otherwise.
template <class Op>
concept Displacing = count_int_arrays(&Op::arguments) > 1;

/// The mode of a plan, where this MPI has it.
inline words::Mode mode_of(const PlanProbe& probe) {
  const auto mode = word_parameter<words::Mode>(probe, "mode");
  if (mode != words::Mode::persistent || has_mpi4) return mode;
  throw Failure(FailureCode::unsupported, "persistent collectives came with MPI 4, this measurer was built with MPI " +
                                              std::to_string(MPI_VERSION) + ": build it with a newer library");
}

template <class Op>
void fill_sent(CollectiveMemory& memory, std::uint64_t turn) {
  const int rank = memory.shape().rank;
  if constexpr (Op::kind == CollectiveKind::sums) {
    fill_vector(as_doubles(memory.sent()), rank, turn);
  } else {
    for (int i = 0; i < memory.blocks().sent; ++i) {
      fill_block(memory.sent_block(i), {static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(i), turn});
    }
  }
}

template <class Op>
void compare_received(CollectiveMemory& memory, std::uint64_t turn, Counters& counters) {
  if constexpr (Op::kind == CollectiveKind::sums) {
    const Summed summed = Op::result(memory.shape());
    if (memory.blocks().received == 0 || summed.first_ranks == 0) return;
    count_result(counters, is_sum(as_doubles(memory.received()), weight_of_first(summed.first_ranks),
                                  static_cast<std::size_t>(summed.block) * memory.block_elements(), turn));
  } else {
    for (int i = 0; i < memory.blocks().received; ++i) {
      const Origin origin = Op::origin(memory.shape(), i);
      const auto is_from = [&](int block) {
        return is_block(memory.received_block(i),
                        {static_cast<std::uint64_t>(origin.source), static_cast<std::uint64_t>(block), turn});
      };
      count_result(counters, is_from(origin.block) || is_from(origin.other_block));
    }
  }
}

/// A barrier brings nothing; it holds if nobody leaves before the last has come. Another rank comes late each time.
template <class Call>
void verify_barrier(Call& call, MPI_Comm communicator, const Shape& shape, std::uint64_t turn, Task& task) {
  constexpr timespec late{0, 2'000'000};
  if (turn % static_cast<std::uint64_t>(shape.ranks) == static_cast<std::uint64_t>(shape.rank)) {
    nanosleep(&late, nullptr);
  }
  std::int64_t came_ns = task.clock.to_global(Clock::now());
  check_mpi(call(), "MPI_Barrier");
  const std::int64_t left_ns = task.clock.to_global(Clock::now());
  // Clocks agree within their errors only.
  const auto error_ns = static_cast<std::int64_t>(task.clock.error_at(Clock::now()));
  came_ns -= error_ns;
  check_mpi(MPI_Allreduce(MPI_IN_PLACE, &came_ns, 1, MPI_INT64_T, MPI_MAX, communicator), "MPI_Allreduce");
  count_result(task.counters, left_ns + error_ns >= came_ns);
}

template <class Op, class Call>
void verify_calls(CollectiveMemory& memory, Call& call, MPI_Comm communicator, Task& task) {
  for (std::uint64_t turn = 0; turn < task.probe.verify_messages; ++turn) {
    if constexpr (!facts_of(Op::pattern).has_size) {
      verify_barrier(call, communicator, memory.shape(), turn, task);
    } else {
      fill_sent<Op>(memory, turn);
      wipe(memory.received());
      check_mpi(call(), Op::name);
      compare_received<Op>(memory, turn, task.counters);
    }
  }
}

/// Take calls from the start that the order's phase has.
template <class Call>
void take_either(Call& call, MPI_Comm communicator, const CallOrder& order, const ClockModel& clock, CallTimes& times) {
  if (order.phase == CallPhase::barrier_start) return take_after_barriers(call, communicator, order, clock, times);
  take_calls(call, order, clock, times);
}

/// What is hidden is found by three kinds of batches: the pure call, computing alone, and both.
template <class Op>
Outcome run_nonblocking(MPI_Comm communicator, const Operands& operands, Task& task) {
  Computing computing;
  NonblockingCall<Op> pure{operands};
  OverlappedCall<Op> overlapped{operands, computing};
  const auto compute_only = [&] {
    computing();
    return MPI_SUCCESS;
  };
  Conductor conductor(communicator, task, [&](const CallOrder& order, CallTimes& times) {
    if (order.phase == CallPhase::calibrate) return computing.calibrate(order.compute_ns);
    if (order.phase == CallPhase::computing) return take_calls(compute_only, order, task.clock, times);
    if (order.phase == CallPhase::overlapped) return take_calls(overlapped, order, task.clock, times);
    take_either(pure, communicator, order, task.clock, times);
  });
  return conductor.run({.barrier_start = true, .overlap = true});
}

template <class Call>
Outcome run_calls(MPI_Comm communicator, Call&& call, Task& task) {
  Conductor conductor(communicator, task, [&](const CallOrder& order, CallTimes& times) {
    take_either(call, communicator, order, task.clock, times);
  });
  return conductor.run({.barrier_start = true});
}

/// A collective in one of the modes.
template <class Op>
class CollectiveCell : public PreparedOperation {
 public:
  CollectiveCell(MPI_Comm communicator, Task& task)
      : communicator_(communicator),
        task_(task),
        mode_(mode_of(task.probe)),
        memory_(communicator, task, Op::kind, Op::sizes, Displacing<Op>) {}

  void open() override {
    if constexpr (OnGrid<Op>) memory_.make_grid();
    if (mode_ == words::Mode::persistent) persistent_.emplace(memory_.operands());
  }

  void verify() override {
    const auto verify = [&](auto&& call) { verify_calls<Op>(memory_, call, communicator_, task_); };
    if (mode_ == words::Mode::blocking) return verify(BlockingCall<Op>{memory_.operands()});
    if (mode_ == words::Mode::nonblocking) return verify(NonblockingCall<Op>{memory_.operands()});
    verify(*persistent_);
  }

  Outcome run() override {
    Outcome outcome = run_mode();
    outcome.bytes_per_sample = memory_.counted_bytes();
    return outcome;
  }

  void close() override {
    persistent_.reset();  // its calls are of the grid
    memory_.free_grid();
  }

 private:
  Outcome run_mode() {
    const Operands& operands = memory_.operands();
    if (mode_ == words::Mode::blocking) return run_calls(communicator_, BlockingCall<Op>{operands}, task_);
    if (mode_ == words::Mode::nonblocking) return run_nonblocking<Op>(communicator_, operands, task_);
    return run_calls(communicator_, *persistent_, task_);
  }

  MPI_Comm communicator_;
  Task& task_;
  words::Mode mode_;
  CollectiveMemory memory_;
  std::optional<PersistentCall<Op>> persistent_;
};

template <class Op>
std::unique_ptr<PreparedOperation> prepare_collective(MPI_Comm communicator, Task& task) {
  return std::make_unique<CollectiveCell<Op>>(communicator, task);
}

}  // namespace fabricbench

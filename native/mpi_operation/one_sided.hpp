// put, get, accumulate, fetch-and-op and compare-and-swap: the first rank accesses a window of the second. A sample is
// the access and what closes its epoch, so that it is complete at the target:
//
//   fence   the access and MPI_Win_fence, which the target calls as well
//   lock    MPI_Win_lock (shared), the access, MPI_Win_unlock
//   flush   the access and MPI_Win_flush, in an epoch that stays open
//
// Where the target calls nothing it waits in MPI_Recv, so that libraries which need it for progress have it. An access
// is a type with `call`, one MPI call that begins it, and `leaves`, what it leaves behind.
//
// Of put and get, a sample may be several accesses that one closing completes (`accesses`), each on bytes of its own,
// side by side: with flush, and in a loop (back to back), that is what osu_put_bw and osu_get_bw call a window.
#pragma once

#include <mpi.h>

#include <cstring>
#include <limits>

#include "core/message_buffer.hpp"
#include "core/parameters.hpp"
#include "mpi_operation/conductor.hpp"
#include "mpi_operation/contents.hpp"
#include "mpi_operation/operation.hpp"

namespace fabricbench {
namespace one_sided {

inline constexpr int origin = 0;
inline constexpr int target = 1;
inline constexpr int done_tag = 1;

/// The arguments of an access.
struct Access {
  MPI_Win window = MPI_WIN_NULL;
  std::byte* local = nullptr;   // what goes there
  std::byte* result = nullptr;  // what was there before, or comes from there
  void* compare = nullptr;      // what must be there
  int count = 0;
  MPI_Aint place = 0;  // in the window
};

/// Those of one sample: each is `step` bytes beyond the one before, up to `end`.
struct Accesses {
  Access first;
  MPI_Aint step = 0;
  MPI_Aint end = 0;
};

/// Begin all of them; the first error.
template <class Kind>
int begin_all(const Accesses& accesses) {
  Access access = accesses.first;
  for (; access.place != accesses.end; access.place += accesses.step) {
    if (const int error = Kind::call(access); error != MPI_SUCCESS) [[unlikely]]
      return error;
    access.local += accesses.step;
    access.result += accesses.step;
  }
  return MPI_SUCCESS;
}

/// What an access leaves behind, given what was in the window and what the origin had; for verification.
enum class Leaves { local_in_window, window_at_origin, sum, integer_sum, swapped };

template <class Kind>
constexpr bool is_integer = Kind::leaves == Leaves::integer_sum || Kind::leaves == Leaves::swapped;
template <class Kind>
constexpr bool is_of_doubles = Kind::leaves == Leaves::sum;

// How an access is closed: also one that failed, for the target waits for a fence, and a locked window cannot be freed.

struct Fence {
  static constexpr bool target_takes_part = true;
  static int open(MPI_Win window) { return MPI_Win_fence(0, window); }
  static int close(MPI_Win window) { return MPI_Win_fence(MPI_MODE_NOSUCCEED, window); }
  template <class Kind>
  static int call(const Accesses& accesses) {
    const int error = begin_all<Kind>(accesses);
    const int closing = MPI_Win_fence(0, accesses.first.window);
    return error == MPI_SUCCESS ? closing : error;
  }
};

struct Lock {
  static constexpr bool target_takes_part = false;
  static int open(MPI_Win) { return MPI_SUCCESS; }
  static int close(MPI_Win) { return MPI_SUCCESS; }
  template <class Kind>
  static int call(const Accesses& accesses) {
    const int locking = MPI_Win_lock(MPI_LOCK_SHARED, target, 0, accesses.first.window);
    if (locking != MPI_SUCCESS) [[unlikely]]
      return locking;
    const int error = begin_all<Kind>(accesses);
    const int closing = MPI_Win_unlock(target, accesses.first.window);
    return error == MPI_SUCCESS ? closing : error;
  }
};

struct Flush {
  static constexpr bool target_takes_part = false;
  static int open(MPI_Win window) { return MPI_Win_lock_all(0, window); }
  static int close(MPI_Win window) { return MPI_Win_unlock_all(window); }
  template <class Kind>
  static int call(const Accesses& accesses) {
    const int error = begin_all<Kind>(accesses);
    return error == MPI_SUCCESS ? MPI_Win_flush(target, accesses.first.window) : error;
  }
};

inline std::size_t checked_bytes(const PlanProbe& probe, bool integer, bool of_doubles) {
  const std::size_t bytes = probe.message_bytes;
  const auto most = static_cast<std::size_t>(std::numeric_limits<int>::max());
  if (integer && bytes != sizeof(std::int64_t)) {
    throw Failure(FailureCode::unsupported, std::string(name_of(probe.pattern)) +
                                                " is of one 64-bit integer: message_bytes must be 8, found " +
                                                std::to_string(bytes));
  }
  if (of_doubles && bytes % sizeof(double) != 0) {
    throw Failure(FailureCode::unsupported,
                  "doubles are summed: message_bytes must be a multiple of 8, found " + std::to_string(bytes));
  }
  if (bytes == 0 || bytes > most) {
    throw Failure(FailureCode::unsupported, "message_bytes must be from 1 to " + std::to_string(most));
  }
  return bytes;
}

/// The target's window and the origin's buffers.
class Memory {
 public:
  Memory(MPI_Comm communicator, const Task& task, bool integer, bool of_doubles)
      : bytes_(checked_bytes(task.probe, integer, of_doubles)),
        accesses_(accesses_of(task.probe)),
        local_(task.allocate(accesses_ * bytes_)),
        result_(task.allocate(accesses_ * bytes_)),
        expected_(accesses_ * bytes_) {
    int rank = 0;
    MPI_Comm_rank(communicator, &rank);
    is_origin_ = rank == origin;
  }

  /// Collective.
  void open_window(MPI_Comm communicator) {
    const auto bytes = static_cast<MPI_Aint>(is_origin_ ? 0 : expected_.size());
    void* memory = nullptr;
    check_mpi(MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, communicator, &memory, &window_), "MPI_Win_allocate");
    MPI_Win_set_errhandler(window_, MPI_ERRORS_RETURN);
    exposed_ = {static_cast<std::byte*>(memory), static_cast<std::size_t>(bytes)};
    std::ranges::fill(exposed_, std::byte{0});
  }
  /// Collective.
  void free_window() { MPI_Win_free(&window_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  bool is_origin() const { return is_origin_; }
  std::span<std::byte> exposed() const { return exposed_; }
  std::span<std::byte> local() { return local_.span(); }
  std::span<std::byte> result() { return result_.span(); }
  std::span<std::byte> expected() { return expected_; }
  std::int64_t& compared() { return compared_; }

  std::size_t accesses() const { return accesses_; }

  Accesses all(bool of_doubles) {
    const std::size_t count = of_doubles ? bytes_ / sizeof(double) : bytes_;
    return {.first = {.window = window_,
                      .local = local_.data(),
                      .result = result_.data(),
                      .compare = &compared_,
                      .count = static_cast<int>(count)},
            .step = static_cast<MPI_Aint>(bytes_),
            .end = static_cast<MPI_Aint>(local_.size())};
  }

 private:
  static std::size_t accesses_of(const PlanProbe& probe) {
    return find_parameter(probe.pattern, "accesses") == nullptr ? 1 : whole_parameter(probe, "accesses");
  }

  std::size_t bytes_;
  std::size_t accesses_;
  MessageBuffer local_;
  MessageBuffer result_;
  std::vector<std::byte> expected_;
  std::int64_t compared_ = 0;
  MPI_Win window_ = MPI_WIN_NULL;
  std::span<std::byte> exposed_;
  bool is_origin_ = false;
};

/// One of the kinds of access, closed in one of the ways.
template <class Kind, class Sync>
class OneSided : public PreparedOperation {
 public:
  OneSided(MPI_Comm communicator, Task& task)
      : communicator_(communicator), task_(task), memory_(communicator, task, is_integer<Kind>, is_of_doubles<Kind>) {}

  void open() override {
    memory_.open_window(communicator_);
    accesses_ = memory_.all(is_of_doubles<Kind>);
  }

  /// An access that fails ends no turn: the target would wait for the origin.
  void verify() override {
    int failed = MPI_SUCCESS;
    for (std::uint64_t turn = 0; turn < task_.probe.verify_messages; ++turn) {
      const int error = verify_turn(turn);
      if (failed == MPI_SUCCESS) failed = error;
    }
    check_mpi(failed, "the access");
  }

  /// The epoch is closed on every rank however the calls within it end, for MPI_Win_free would wait for it; but not
  /// where the launch is over, or another rank is not heard of any more.
  Outcome run() override {
    check_mpi(Sync::open(window()), "opening the epoch");
    Outcome outcome;
    try {
      outcome = Conductor(communicator_, task_, [this](const CallOrder& order, CallTimes& times) {
                  take(order, times);
                }).run({});
    } catch (const Failure&) {
      Sync::close(window());
      throw;
    }
    check_mpi(Sync::close(window()), "closing the epoch");
    outcome.bytes_per_sample = memory_.accesses() * task_.probe.message_bytes;
    return outcome;
  }

  void close() override { memory_.free_window(); }

 private:
  void take(const CallOrder& order, CallTimes& times) {
    std::uint32_t called = 0;
    const auto access = [this, &called] {
      ++called;
      return Sync::template call<Kind>(accesses_);
    };
    const auto fence = [this] { return MPI_Win_fence(0, window()); };
    if (memory_.is_origin()) {
      take_calls(access, order, task_.clock, times);
      if constexpr (Sync::target_takes_part) {
        for (; called < order.calls; ++called) fence();  // after an access that failed: the target calls them all
      } else {
        tell_target();
      }
    } else if constexpr (Sync::target_takes_part) {
      take_calls(fence, order, task_.clock, times);
      times.forget_times();
    } else {
      wait_for_origin();
    }
  }

  MPI_Win window() const { return accesses_.first.window; }

  void tell_target() { check_mpi(MPI_Send(nullptr, 0, MPI_BYTE, target, done_tag, communicator_), "MPI_Send"); }
  void wait_for_origin() {
    check_mpi(MPI_Recv(nullptr, 0, MPI_BYTE, origin, done_tag, communicator_, MPI_STATUS_IGNORE), "MPI_Recv");
  }

  /// Both know what the window and the origin had, so each compares what it has afterwards. Returns the access's error.
  int verify_turn(std::uint64_t turn) {
    if (memory_.is_origin()) {
      fill(memory_.local(), origin, turn);
      wipe(memory_.result());
      memory_.compared() = integer_of(target, turn) + (is_matching(turn) ? 0 : 1);
    } else {
      expose([&] { fill(memory_.exposed(), target, turn); });
    }
    check_mpi(MPI_Barrier(communicator_), "MPI_Barrier");
    check_mpi(Sync::open(window()), "opening the epoch");
    int error = MPI_SUCCESS;
    try {
      error = take_part();
    } catch (const Failure&) {
      Sync::close(window());
      throw;
    }
    check_mpi(Sync::close(window()), "closing the epoch");
    if (memory_.is_origin()) {
      if (Kind::leaves == Leaves::window_at_origin || is_integer<Kind>) {
        count_result(task_.counters, is_filled(memory_.result(), target, turn));
      }
    } else {
      expose([&] { count_result(task_.counters, is_as_left(turn)); });
    }
    check_mpi(MPI_Barrier(communicator_), "MPI_Barrier");
    return error;
  }

  /// One access that nobody times. The target is told of its end however it went.
  int take_part() {
    int error = MPI_SUCCESS;
    if (memory_.is_origin()) {
      error = Sync::template call<Kind>(accesses_);
      if constexpr (!Sync::target_takes_part) tell_target();
    } else if constexpr (Sync::target_takes_part) {
      check_mpi(MPI_Win_fence(0, window()), "MPI_Win_fence");
    } else {
      wait_for_origin();
    }
    return error;
  }

  /// The target's own look at its window is an access as well.
  template <class Look>
  void expose(Look look) {
    check_mpi(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, window()), "MPI_Win_lock");
    look();
    check_mpi(MPI_Win_unlock(target, window()), "MPI_Win_unlock");
  }

  static std::int64_t integer_of(int rank, std::uint64_t turn) {
    return (static_cast<std::int64_t>(rank + 3) << 40) + static_cast<std::int64_t>(turn) * 1000 + rank;
  }
  static bool is_matching(std::uint64_t turn) { return turn % 2 == 0; }

  static void fill(std::span<std::byte> bytes, int rank, std::uint64_t turn) {
    if constexpr (is_integer<Kind>) {
      const std::int64_t integer = integer_of(rank, turn);
      std::memcpy(bytes.data(), &integer, sizeof integer);
    } else if constexpr (Kind::leaves == Leaves::sum) {
      fill_vector(as_doubles(bytes), rank, turn);
    } else {
      fill_block(bytes, {static_cast<std::uint64_t>(rank), 0, turn});
    }
  }

  bool is_filled(std::span<const std::byte> bytes, int rank, std::uint64_t turn) {
    fill(memory_.expected(), rank, turn);
    return std::ranges::equal(bytes, memory_.expected());
  }

  bool is_as_left(std::uint64_t turn) {
    const std::span<std::byte> window = memory_.exposed();
    std::int64_t integer = 0;
    if constexpr (is_integer<Kind>) std::memcpy(&integer, window.data(), sizeof integer);
    switch (Kind::leaves) {
      case Leaves::local_in_window:
        return is_filled(window, origin, turn);
      case Leaves::window_at_origin:
        return is_filled(window, target, turn);
      case Leaves::sum:
        return is_sum(as_doubles(window), weight_of(origin) + weight_of(target), 0, turn);
      case Leaves::integer_sum:
        return integer == integer_of(origin, turn) + integer_of(target, turn);
      case Leaves::swapped:
        return integer == integer_of(is_matching(turn) ? origin : target, turn);
    }
    return false;
  }

  MPI_Comm communicator_;
  Task& task_;
  Memory memory_;
  Accesses accesses_;
};

}  // namespace one_sided

template <class Op>
concept OneSidedAccess = requires { Op::leaves; };

template <OneSidedAccess Op>
std::unique_ptr<PreparedOperation> prepare_one_sided(MPI_Comm communicator, Task& task) {
  switch (word_parameter<words::Sync>(task.probe, "sync")) {
    case words::Sync::fence:
      return std::make_unique<one_sided::OneSided<Op, one_sided::Fence>>(communicator, task);
    case words::Sync::lock:
      return std::make_unique<one_sided::OneSided<Op, one_sided::Lock>>(communicator, task);
    case words::Sync::flush:
      return std::make_unique<one_sided::OneSided<Op, one_sided::Flush>>(communicator, task);
  }
  return nullptr;
}

struct Put {
  static constexpr auto leaves = one_sided::Leaves::local_in_window;
  static int call(const one_sided::Access& access) {
    return MPI_Put(access.local, access.count, MPI_BYTE, one_sided::target, access.place, access.count, MPI_BYTE,
                   access.window);
  }
};

struct Get {
  static constexpr auto leaves = one_sided::Leaves::window_at_origin;
  static int call(const one_sided::Access& access) {
    return MPI_Get(access.result, access.count, MPI_BYTE, one_sided::target, access.place, access.count, MPI_BYTE,
                   access.window);
  }
};

struct Accumulate {
  static constexpr auto leaves = one_sided::Leaves::sum;
  static int call(const one_sided::Access& access) {
    return MPI_Accumulate(access.local, access.count, MPI_DOUBLE, one_sided::target, 0, access.count, MPI_DOUBLE,
                          MPI_SUM, access.window);
  }
};

struct FetchAndOp {
  static constexpr auto leaves = one_sided::Leaves::integer_sum;
  static int call(const one_sided::Access& access) {
    return MPI_Fetch_and_op(access.local, access.result, MPI_INT64_T, one_sided::target, 0, MPI_SUM, access.window);
  }
};

struct CompareAndSwap {
  static constexpr auto leaves = one_sided::Leaves::swapped;
  static int call(const one_sided::Access& access) {
    return MPI_Compare_and_swap(access.local, access.compare, access.result, MPI_INT64_T, one_sided::target, 0,
                                access.window);
  }
};

}  // namespace fabricbench

// The log of a stream's windows, on a clock that the test turns.
#include <gtest/gtest.h>

#include "pattern/stream.hpp"
#include "tests/mpi/task_of_team.hpp"

namespace fabricbench {
namespace {

/// Deciding whether there are enough takes 200 ns on it, whatever it takes.
struct TurnedClock {
  static inline std::uint64_t time = 1'000'000;
  static std::uint64_t now() { return time += 200; }
};

class WindowLogs : public testing::Test, protected TaskOfTeam {
 protected:
  WindowLogs() {
    probe.warmup_samples = 0;
    probe.message_bytes = 64;
    probe.stopping = {.minimum_samples = 4, .maximum_samples = 100, .maximum_seconds = 1, .relative_width = 1e-9};
    samples.prepare(0, 100, true);
  }
  /// A window that ends so long after what came before.
  void take(WindowLog<TurnedClock>& log, std::uint64_t time_ns) {
    TurnedClock::time += time_ns;
    log.add(TurnedClock::time, time_ns, 1);
  }
};

TEST_F(WindowLogs, LeaveOutTheWindowInWhichItWasDecidedWhetherThereAreEnough) {
  WindowLog<TurnedClock> log(task);
  take(log, 1000);  // the first: it is decided, while the next one begins
  take(log, 1001);
  take(log, 1002);
  take(log, 1003);
  take(log, 1004);  // the fourth that counts: it is decided again
  take(log, 1005);
  take(log, 1006);
  const auto found = samples.measured.times_ns();
  EXPECT_EQ(std::vector(found.begin(), found.end()), (std::vector<std::uint64_t>{1000, 1002, 1003, 1004, 1006}));
}

TEST_F(WindowLogs, KeepWindowsThatAreLongBesideTheDecision) {
  WindowLog<TurnedClock> log(task);
  for (std::uint64_t i = 0; i < 10; ++i) take(log, 1'000'000 + i);
  EXPECT_EQ(samples.measured.size(), 10U);
}

}  // namespace
}  // namespace fabricbench

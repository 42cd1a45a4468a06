// How an operation over many ranks is directed, seen from the first of them: the others are not there.
#include "mpi_operation/conductor.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "base/clock.hpp"
#include "base/failure.hpp"
#include "core/control_transport.hpp"
#include "task_of_team.hpp"

namespace fabricbench {
namespace {

/// Rank 0 of a launch whose other ranks take everything and say nothing.
class SilentRanks final : public ControlTransport {
 public:
  explicit SilentRanks(int size) : size_(size) {}
  int rank() const override { return 0; }
  int size() const override { return size_; }
  MPI_Request post(int, int, const std::string&) override { return MPI_REQUEST_NULL; }
  std::optional<int> probe(int, int) override { return std::nullopt; }
  std::optional<Arrival> take(int, int) override { return std::nullopt; }
  bool is_complete(MPI_Request&) override { return true; }
  std::uint64_t now_ns() const override { return Clock::now(); }
  void wait(Pause&, std::optional<std::uint64_t>) override {}
  [[noreturn]] void abort(int) override { std::abort(); }

 private:
  int size_;
};

/// The time from the first order to its first call, as the first of so many ranks gives it.
std::int64_t first_lead_ns_of(int ranks) {
  TaskOfTeam first(std::make_unique<SilentRanks>(ranks), ranks);
  std::int64_t lead_ns = 0;
  std::int64_t before_ns = 0;
  const auto take = [&](const CallOrder& order, CallTimes&) {
    lead_ns = order.start_ns - before_ns;
    throw Failure(FailureCode::error, "enough is known");
  };
  Conductor conductor(MPI_COMM_SELF, first.task, take);
  before_ns = static_cast<std::int64_t>(Clock::now());
  EXPECT_THROW(conductor.run({}), Failure);
  return lead_ns;
}

constexpr std::int64_t millisecond = 1'000'000;

TEST(Conductor, GivesAStarOfRanksTimeForEachOfThemToGetItsOrder) {
  EXPECT_GE(first_lead_ns_of(9), millisecond + 9 * 50'000);
}

TEST(Conductor, GivesATreeOfRanksTimeForEachStepAndNotForEachRank) {
  EXPECT_GE(first_lead_ns_of(1'000), 5 * millisecond);
  EXPECT_LT(first_lead_ns_of(10'000), 250 * millisecond) << "each rank's 50 us would be half a second";
}

TEST(Conductor, KeepsWhatTheSlowestRankTookOnTheFirstRankAlone) {
  constexpr std::size_t calls = 40;
  TaskOfTeam two;
  two.probe.pattern = Pattern::barrier;
  two.probe.warmup_samples = 5;
  two.probe.stopping = {.minimum_samples = calls, .maximum_samples = calls, .maximum_seconds = 10};
  two.samples.prepare(5, calls, false);
  const bool is_first = two.team.member() == 0;
  std::size_t taken = 0;
  const auto take = [&](const CallOrder& order, CallTimes& times) {
    for (std::uint32_t i = 0; i < order.calls; ++i) {
      const bool is_measured = order.phase == CallPhase::measured;
      const std::int64_t late_ns = is_measured && !is_first && taken++ == 7 ? 1'000 * millisecond : 0;
      times.note(i, is_first ? 5'000 : 9'000, late_ns, MPI_SUCCESS);
    }
  };
  Conductor(MPI_COMM_WORLD, two.task, take).run({});
  EXPECT_EQ(two.samples.warmup.size(), is_first ? 5U : 0U);
  EXPECT_EQ(two.samples.measured.size(), is_first ? calls : 0U);
  EXPECT_EQ(std::ranges::count(two.samples.measured.times_ns(), 9'000U), is_first ? std::ptrdiff_t{calls} : 0);
  EXPECT_EQ(two.findings.missed, is_first ? std::vector<std::uint32_t>{7} : std::vector<std::uint32_t>{});
  two.team.discard_leftovers();
}

}  // namespace
}  // namespace fabricbench

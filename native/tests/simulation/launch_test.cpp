#include "simulation/launch.hpp"

#include <gtest/gtest.h>

#include <tuple>

#include "core/tree.hpp"

namespace fabricbench::simulation {
namespace {

#if defined(CHECKS_ADDRESSES)
constexpr int many_ranks = 300;  // of which 1,024 take minutes
constexpr int in_the_middle = 140;
#else
constexpr int many_ranks = 1024;
constexpr int in_the_middle = 640;
#endif
constexpr double patience_seconds = 10;
// Who waits asks when the patience is over, and the end is heard of within a quarter of it.
constexpr double most_seconds = patience_seconds * 2;

TEST(SimulatedLaunch, EndsOnAllRanksHoweverManyThereAre) {
  for (const int ranks : {1, 2, 3, 9, 10, 11, 74, 300}) {
    const LaunchOutcome outcome = simulate_launch({.ranks = ranks, .patterns = {"allreduce", "chaos", "sendrecv"}});
    EXPECT_TRUE(outcome.left.empty()) << ranks;
    EXPECT_TRUE(outcome.causes.empty()) << ranks << ": " << outcome.causes.front();
    EXPECT_EQ(outcome.cell_end_seconds.size(), 3U);
  }
}

TEST(SimulatedLaunch, AThousandRanksBeginAndEndSoon) {
  const LaunchOutcome outcome = simulate_launch({.ranks = many_ranks, .patterns = {"allreduce", "chaos"}});
  EXPECT_TRUE(outcome.left.empty());
  EXPECT_LT(outcome.start_seconds, 5);
  for (const double seconds : outcome.cell_end_seconds) EXPECT_LT(seconds, 0.5);
}

/// A rank hangs at a point of a launch of many: who waits for it names it, and all end.
class Hang : public testing::TestWithParam<std::tuple<int, Point>> {};

TEST_P(Hang, IsNamedWithinThePatienceByWhoWaitsForIt) {
  const int victim = std::get<0>(GetParam());
  const Point point = std::get<1>(GetParam());
  if (victim == 0 && point == Point::report) {
    GTEST_SKIP() << "all others wait for an order, however long: who started the launch ends it";
  }
  std::uint64_t hung_ns = 0;
  const LaunchOutcome outcome =
      simulate_launch({.ranks = many_ranks,
                       .patterns = {"allreduce", "allreduce"},
                       .patience_seconds = patience_seconds,
                       .at = [&](World& world, int rank, int cell, Point here) {
                         if (rank != victim || here != point || (point != Point::begin && cell != 1)) return;
                         hung_ns = world.now_ns();
                         world.hang();
                       }});
  ASSERT_FALSE(outcome.causes.empty());
  const std::string name = "heard nothing from rank " + std::to_string(victim) + " for";
  const std::string& cause = outcome.causes.front();
  EXPECT_NE(cause.find(name), std::string::npos) << cause;
  EXPECT_NE(cause.find("it does not answer"), std::string::npos) << cause;
  // One that hangs is ended by force, with all others.
  ASSERT_TRUE(outcome.aborted);
  EXPECT_LT(static_cast<double>(outcome.aborted->at_ns - hung_ns) * 1e-9, most_seconds);
}

// The first child of the root with 127 below it, one of its children, a leaf, the last rank; rank 0.
INSTANTIATE_TEST_SUITE_P(Everywhere, Hang,
                         testing::Combine(testing::Values(1, 2, 5, in_the_middle, many_ranks - 1, 0),
                                          testing::Values(Point::begin, Point::cell, Point::agreement, Point::order,
                                                          Point::report)));

TEST(SimulatedLaunch, OneThatCannotGoOnEndsItOnAll) {
  for (const int victim : {0, 1, 3, in_the_middle, many_ranks - 1}) {
    const LaunchOutcome outcome =
        simulate_launch({.ranks = many_ranks, .at = [victim](World&, int rank, int, Point point) {
                           if (rank == victim && point == Point::report) throw std::runtime_error("the disk is full");
                         }});
    EXPECT_TRUE(outcome.left.empty()) << victim;
    EXPECT_FALSE(outcome.aborted);
    ASSERT_EQ(outcome.causes.size(), 1U);
    EXPECT_EQ(outcome.causes.front(), "rank " + std::to_string(victim) + ": the disk is full");
  }
}

TEST(SimulatedLaunch, SeveralThatEndItAtOnceAllEnd) {
  const LaunchOutcome outcome = simulate_launch({.ranks = 300, .at = [](World&, int rank, int, Point point) {
                                                   if (rank % 50 == 49 && point == Point::report) {
                                                     throw std::runtime_error("the disk is full");
                                                   }
                                                 }});
  EXPECT_TRUE(outcome.left.empty());
  EXPECT_FALSE(outcome.aborted);
  EXPECT_FALSE(outcome.causes.empty());
}

}  // namespace
}  // namespace fabricbench::simulation

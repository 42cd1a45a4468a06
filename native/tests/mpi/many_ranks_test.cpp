// What more ranks than a star has say to one another. Run on twenty ranks, by a test of their own: rank 0 has eight
// below it, of which the first three have two each.
#include <gtest/gtest.h>

#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

#include "core/channel.hpp"
#include "core/clock_sync.hpp"
#include "mpi_operation/timed_calls.hpp"

namespace fabricbench {
namespace {

constexpr int most_of_a_star = static_cast<int>(TreePlace::largest_star);

class ManyRanks : public testing::Test {
 protected:
  void SetUp() override {
    if (control_.size() <= most_of_a_star) GTEST_SKIP() << "needs more ranks than a star has";
  }
  static Gathered join(Gathered one, Gathered other) {
    for (std::string& text : other.all) one.all.push_back(std::move(text));
    return one;
  }
  Gathered own() const { return {{std::to_string(control_.rank())}}; }

  Control control_;
  Channel channel_{control_};
};

TEST_F(ManyRanks, HearTheFirstAndTheFirstHearsThemInTheirOrder) {
  EXPECT_EQ(control_.broadcast(control_.rank() == 0 ? "from rank 0" : ""), "from rank 0");
  const std::vector<std::string> all = control_.gather(std::to_string(control_.rank()));
  ASSERT_EQ(all.size(), control_.rank() == 0 ? static_cast<std::size_t>(control_.size()) : 0U);
  for (std::size_t rank = 0; rank < all.size(); ++rank) EXPECT_EQ(all[rank], std::to_string(rank));
  EXPECT_TRUE(channel_.is_on_all(true));
  EXPECT_FALSE(channel_.is_on_all(control_.rank() != control_.size() - 1));
}

TEST_F(ManyRanks, OfWhomRankZeroIsOneOrNoneReportAlongTheTree) {
  for (const int left_out : {-1, 0, 7}) {
    std::vector<int> ranks;
    for (int rank = control_.size() - 1; rank >= 0; --rank) {
      if (rank != left_out) ranks.push_back(rank);
    }
    const bool is_member = control_.rank() != left_out;
    if (!is_member && control_.rank() != 0) continue;
    const CellTree tree(channel_, RankList(ranks));
    const Gathered all = tree.collect(is_member ? own() : Gathered{}, join);
    if (control_.rank() != 0) continue;
    std::erase(ranks, 0);
    if (is_member) ranks.insert(ranks.begin(), 0);
    ASSERT_EQ(all.all.size(), ranks.size());
    for (std::size_t place = 0; place < ranks.size(); ++place) EXPECT_EQ(all.all[place], std::to_string(ranks[place]));
  }
}

TEST_F(ManyRanks, OfATeamAllHaveWhatAllJoinedAndFollowItsFirst) {
  const CellTeam team(control_, RankList::first(control_.size()), 3);
  const Gathered all = team.converge<Gathered>(own(), join);
  EXPECT_EQ(all.all.size(), team.size());
  EXPECT_EQ(all.all.back(), std::to_string(control_.size() - 1));
  std::vector<std::uint32_t> taken;
  {
    TeamOrders<CallOrder> orders(team);
    if (team.member() == 0) {
      for (const std::uint32_t calls : {3U, 5U}) orders.give({.phase = CallPhase::measured, .calls = calls});
    } else {
      while (const auto order = orders.next()) taken.push_back(order->calls);
      EXPECT_EQ(taken, (std::vector<std::uint32_t>{3, 5}));
    }
  }
  team.has_any(false);
  // One that stops early lets those below it go.
  {
    TeamOrders<CallOrder> orders(team);
    if (team.member() == 0) {
      for (int i = 0; i < 3; ++i) orders.give({.phase = CallPhase::measured, .calls = 1});
    } else if (team.member() == 1) {
      orders.next();
    } else {
      while (orders.next()) continue;
    }
  }
  team.has_any(false);
  team.discard_leftovers();
}

TEST_F(ManyRanks, HearOfTheEndFromWhicheverRankEndsTheLaunch) {
  for (const int ender : {0, 1, 5, control_.size() - 1}) {
    Control control;
    if (control.rank() == ender) {
      control.end_all(3, "the disk is full");
    } else {
      try {
        control.receive_patiently(0, 9);
        ADD_FAILURE() << "nothing was sent";
      } catch (const LaunchEnded& ended) {
        EXPECT_EQ(ended.rank(), ender);
        EXPECT_STREQ(ended.what(), "the disk is full");
        control.confirm(ended);
      }
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

// One that has others below it, and one below such a one, since all began to wait.
TEST_F(ManyRanks, OneThatHangsIsNamedByWhoWaitsForIt) {
  constexpr double patience_seconds = 4;
  for (const int victim : {4, 5}) {
    Control control;
    const Channel channel(control);
    const int waits_for_it = static_cast<int>(
        *TreePlace(static_cast<std::size_t>(control.size()), static_cast<std::size_t>(victim)).parent());
    MPI_Barrier(MPI_COMM_WORLD);
    control.set_patience(patience_seconds);
    try {
      if (control.rank() == victim) {
        std::this_thread::sleep_for(std::chrono::duration<double>(patience_seconds * 1.3));
      } else {
        CellTree(channel, RankList::first(control.size())).collect(own(), join);
      }
      control.receive_patiently(0, 9);
      ADD_FAILURE() << "nothing was sent";
    } catch (const ControlError& error) {
      EXPECT_EQ(control.rank(), waits_for_it) << error.what();
      EXPECT_NE(std::string(error.what()).find("heard nothing from rank " + std::to_string(victim) + " for"),
                std::string::npos)
          << error.what();
      control.end_all(1, error.what());
    } catch (const LaunchEnded& ended) {
      EXPECT_EQ(ended.rank(), waits_for_it) << ended.what();
      control.confirm(ended);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

}  // namespace
}  // namespace fabricbench

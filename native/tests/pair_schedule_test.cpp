#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "pattern/channels.hpp"

namespace fabricbench {
namespace {

using Members = std::vector<std::size_t>;

class EverySize : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(PairSchedule, EverySize, testing::Bool(),
                         [](const auto& one) { return one.param ? "InRounds" : "Alone"; });

TEST_P(EverySize, EveryTwoMembersMeetOnceAndNobodyMeetsTwoAtOnce) {
  for (std::size_t members = 2; members <= 40; ++members) {
    const PairSchedule schedule(members, GetParam());
    std::set<std::pair<std::size_t, std::size_t>> met;
    for (std::size_t turn = 0; turn < schedule.turns(); ++turn) {
      Members busy;
      for (std::size_t member = 0; member < members; ++member) {
        const auto partner = schedule.partner(turn, member);
        if (!partner) continue;
        busy.push_back(member);
        ASSERT_NE(*partner, member);
        ASSERT_EQ(schedule.partner(turn, *partner), member) << members << " members, turn " << turn;
        if (*partner < member) continue;
        EXPECT_TRUE(met.insert({member, *partner}).second);
      }
      EXPECT_EQ(schedule.busy(turn), busy);
    }
    EXPECT_EQ(met.size(), members * (members - 1) / 2);
  }
}

TEST_P(EverySize, NothingIsAfterTheLastTurnNorForWhoIsAlone) {
  const PairSchedule schedule(5, GetParam());
  EXPECT_FALSE(schedule.partner(schedule.turns(), 0));
  EXPECT_TRUE(schedule.busy(schedule.turns()).empty());
  for (const std::size_t members : {0, 1}) {
    const PairSchedule none(members, GetParam());
    EXPECT_EQ(none.turns(), 0U);
    EXPECT_FALSE(none.partner(0, 0));
  }
}

TEST(PairSchedule, AloneIsOnePairATurnInTheOrderOfTheirNumbers) {
  const PairSchedule schedule(4, false);
  std::vector<Members> turns;
  for (std::size_t turn = 0; turn < schedule.turns(); ++turn) turns.push_back(schedule.busy(turn));
  EXPECT_EQ(turns, (std::vector<Members>{{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}}));
}

TEST(PairSchedule, InRoundsAsManyMeetAtOnceAsCan) {
  EXPECT_EQ(PairSchedule(6, true).turns(), 5U);
  EXPECT_EQ(PairSchedule(6, true).busy(0).size(), 6U);
  EXPECT_EQ(PairSchedule(7, true).turns(), 7U);
  EXPECT_EQ(PairSchedule(7, true).busy(0).size(), 6U) << "one rests";
}

}  // namespace
}  // namespace fabricbench

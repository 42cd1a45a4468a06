#include "pattern/channels.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "base/failure.hpp"

namespace fabricbench {
namespace {

constexpr std::size_t most_members = 512;

constexpr std::array two_member_patterns{Pattern::pingping, Pattern::bistream};
constexpr std::array group_patterns{Pattern::sendrecv,     Pattern::exchange, Pattern::halo,   Pattern::star,
                                    Pattern::ring,         Pattern::chaos,    Pattern::incast, Pattern::outcast,
                                    Pattern::message_rate, Pattern::bisection};

using Lists = std::vector<std::vector<Link>>;

Lists all_links(Pattern pattern, std::size_t members, const GroupParameters& parameters, std::size_t round = 0) {
  Lists lists;
  for (std::size_t member = 0; member < members; ++member) {
    lists.push_back(links_of(pattern, members, member, parameters, round));
  }
  return lists;
}

/// One end of a path as the other end should have it.
const Link* other_end(const Lists& lists, std::size_t member, const Link& link) {
  const std::vector<Link>& list = lists[link.peer];
  const auto found =
      std::ranges::find_if(list, [&](const Link& each) { return each.peer == member && each.flow == link.flow; });
  return found == list.end() ? nullptr : &*found;
}

/// Whoever sends to x on a flow, x receives from it on that flow, and the other way round; no path is listed twice.
void expect_that_both_ends_agree(const Lists& lists, const std::string& what) {
  for (std::size_t member = 0; member < lists.size(); ++member) {
    std::set<std::pair<std::size_t, std::size_t>> paths;
    for (const Link& link : lists[member]) {
      ASSERT_LT(link.peer, lists.size()) << what;
      ASSERT_TRUE(paths.emplace(link.peer, link.flow).second) << what << ": twice at member " << member;
      EXPECT_TRUE(link.sends || link.receives) << what;
      ASSERT_NE(link.peer, member) << what << ": member " << member << " sends to itself";
      const Link* const other = other_end(lists, member, link);
      ASSERT_NE(other, nullptr) << what << ": member " << link.peer << " knows no flow " << link.flow << " to "
                                << member;
      EXPECT_EQ(link.sends, other->receives) << what;
      EXPECT_EQ(link.receives, other->sends) << what;
    }
  }
}

std::size_t count_sending(const Lists& lists) {
  std::size_t count = 0;
  for (const std::vector<Link>& list : lists)
    count += static_cast<std::size_t>(std::ranges::count_if(list, &Link::sends));
  return count;
}

TEST(Schedule, EveryTwoMembersMeetExactlyOnceUpTo512) {
  for (std::size_t members = 2; members <= most_members; ++members) {
    std::vector<char> have_met(members * members, 0);
    std::size_t meetings = 0;
    for (std::size_t round = 0; round < schedule_rounds(members); ++round) {
      for (std::size_t member = 0; member < members; ++member) {
        const auto partner = partner_in_round(members, member, round);
        if (!partner) continue;
        const bool is_other = *partner < members && *partner != member;
        // Plain conditions: gtest's macros in the innermost loop would take most of the time.
        if (!is_other || partner_in_round(members, *partner, round) != member) {
          FAIL() << "round " << round << " of " << members << ": " << member << " meets " << *partner;
        }
        if (*partner < member) continue;
        char& met = have_met[member * members + *partner];
        if (met != 0) FAIL() << member << " and " << *partner << " of " << members << " meet again";
        met = 1;
        ++meetings;
      }
    }
    ASSERT_EQ(meetings, members * (members - 1) / 2) << members << " members";
  }
}

TEST(Schedule, TakesNoMoreRoundsThanMembersAndOneRestsWhereTheirNumberIsOdd) {
  for (std::size_t members = 2; members <= most_members; ++members) {
    EXPECT_EQ(schedule_rounds(members), members % 2 == 0 ? members - 1 : members);
    std::size_t resting = 0;
    for (std::size_t member = 0; member < members; ++member) resting += partner_in_round(members, member, 0) ? 0 : 1;
    EXPECT_EQ(resting, members % 2);
  }
}

TEST(Matchings, PairEverySenderWithOneReceiver) {
  for (std::size_t members = 2; members <= 65; ++members) {
    for (std::size_t round = 0; round < 8; ++round) {
      std::size_t sending = 0;
      std::size_t resting = 0;
      for (std::size_t member = 0; member < members; ++member) {
        const auto match = match_of(members, member, 7, round);
        if (!match) {
          ++resting;
          continue;
        }
        sending += match->sends ? 1 : 0;
        const auto back = match_of(members, match->partner, 7, round);
        ASSERT_TRUE(back);
        EXPECT_EQ(back->partner, member);
        EXPECT_NE(back->sends, match->sends);
      }
      EXPECT_EQ(sending, members / 2);
      EXPECT_EQ(resting, members % 2);
    }
  }
}

TEST(Matchings, ComeAgainWithTheSeedAndDifferFromRoundToRound) {
  constexpr std::size_t members = 64;
  const auto partners = [](std::uint64_t seed, std::size_t round) {
    std::vector<std::size_t> list;
    for (std::size_t member = 0; member < members; ++member) {
      list.push_back(match_of(members, member, seed, round)->partner);
    }
    return list;
  };
  EXPECT_EQ(partners(1, 3), partners(1, 3));
  EXPECT_NE(partners(1, 3), partners(1, 4));
  EXPECT_NE(partners(1, 3), partners(2, 3));
}

TEST(Matchings, AreSpreadEvenlyOverAllPartners) {
  constexpr std::size_t members = 8;
  constexpr std::size_t rounds = 7000;
  std::map<std::size_t, std::size_t> met;
  for (std::size_t round = 0; round < rounds; ++round) ++met[match_of(members, 0, 1, round)->partner];
  ASSERT_EQ(met.size(), members - 1);
  // 1000 each; five standard deviations of a binomial count are 146.
  for (const auto& [partner, count] : met) EXPECT_NEAR(static_cast<double>(count), 1000, 146) << partner;
}

TEST(Links, AgreeOnBothEndsInEveryPatternAndChannelsAreTheirNumber) {
  for (const std::size_t flows : {1U, 4U}) {
    // The numbers of flows of an axis and of parallel flows would run into each other: lockstep patterns have no flows.
    for (const std::size_t dimensions : {2U, 3U}) {
      const GroupParameters parameters{{"flows", flows}, {"dimensions", dimensions}};
      for (const Pattern pattern : group_patterns) {
        for (std::size_t members = 2; members <= 33; ++members) {
          const std::string what =
              std::string(name_of(pattern)) + " of " + std::to_string(members) + ", flows " + std::to_string(flows);
          if (flows > 1 && facts_of(pattern).family == Family::lockstep) continue;
          const Lists lists = all_links(pattern, members, parameters);
          expect_that_both_ends_agree(lists, what);
          EXPECT_EQ(channels_of(pattern, members, parameters), count_sending(lists)) << what;
        }
      }
    }
    for (const Pattern pattern : two_member_patterns) {
      if (flows > 1 && facts_of(pattern).family == Family::lockstep) continue;
      const GroupParameters parameters{{"flows", flows}};
      const Lists lists = all_links(pattern, 2, parameters);
      expect_that_both_ends_agree(lists, std::string(name_of(pattern)));
      EXPECT_EQ(channels_of(pattern, 2, parameters), count_sending(lists));
    }
  }
}

TEST(Links, AgreeInEveryRoundOfABisection) {
  const GroupParameters parameters{{"matchings", 8}, {"seed", 3}};
  for (std::size_t members = 2; members <= 33; ++members) {
    for (std::size_t round = 0; round < rounds_of(Pattern::bisection, members, parameters); ++round) {
      const Lists lists = all_links(Pattern::bisection, members, parameters, round);
      expect_that_both_ends_agree(lists, "bisection");
      EXPECT_EQ(count_sending(lists), members / 2);
    }
  }
}

TEST(Links, OfAMemberAreNoMoreThanItsNeighbours) {
  const GroupParameters parameters{};
  EXPECT_EQ(links_of(Pattern::ring, most_members, 7, parameters).size(), 2U);
  EXPECT_EQ(links_of(Pattern::incast, most_members, 7, parameters).size(), 1U);
  EXPECT_EQ(links_of(Pattern::star, most_members, 0, parameters).size(), most_members - 1);
  EXPECT_EQ(links_of(Pattern::chaos, most_members, 7, parameters).size(), most_members - 1);
  EXPECT_EQ(links_of(Pattern::message_rate, 5, 4, parameters).size(), 0U);
}

TEST(Links, AreThoseThatTheNamesOfTheStudiesSay) {
  const GroupParameters parameters{};
  EXPECT_EQ(channels_of(Pattern::star, 4, parameters), 6U);
  EXPECT_EQ(channels_of(Pattern::ring, 4, parameters), 4U);
  EXPECT_EQ(channels_of(Pattern::chaos, 4, parameters), 12U);
  EXPECT_EQ(channels_of(Pattern::incast, 4, {{"flows", 16}}), 48U);
  const std::vector<Link> incast = links_of(Pattern::incast, 4, 0, parameters);
  ASSERT_EQ(incast.size(), 3U);
  for (const Link& link : incast) EXPECT_TRUE(link.receives && !link.sends);
}

TEST(Links, OfSeveralChannelsBetweenTwoMembersHaveFlowsOfTheirOwn) {
  Links links(3);
  links.send_to(1, 0);
  links.send_to(1, 1);
  links.receive_from(1, 1);
  const std::vector<Link> list = links.list();
  ASSERT_EQ(list.size(), 6U);
  for (std::size_t i = 0; i < list.size(); ++i) {
    EXPECT_EQ(list[i], (Link{.peer = 1, .flow = i, .sends = true, .receives = i >= 3}));
  }
}

TEST(GridSides, MultiplyToTheMembersAndAreSortedAndAsEqualAsTheyCanBe) {
  for (std::size_t members = 1; members <= most_members; ++members) {
    for (const std::size_t dimensions : {2U, 3U}) {
      const std::vector<std::size_t> sides = grid_sides(members, dimensions);
      ASSERT_EQ(sides.size(), dimensions);
      EXPECT_EQ(std::accumulate(sides.begin(), sides.end(), std::size_t{1}, std::multiplies()), members);
      EXPECT_TRUE(std::ranges::is_sorted(sides, std::greater()));
    }
  }
  EXPECT_EQ(grid_sides(12, 2), (std::vector<std::size_t>{4, 3}));
  EXPECT_EQ(grid_sides(64, 2), (std::vector<std::size_t>{8, 8}));
  EXPECT_EQ(grid_sides(64, 3), (std::vector<std::size_t>{4, 4, 4}));
  EXPECT_EQ(grid_sides(7, 2), (std::vector<std::size_t>{7, 1}));
}

TEST(GroupParameters, RefuseWhatIsNoNumberInRangeAndNameIt) {
  PlanProbe probe;
  probe.pattern = Pattern::incast;
  probe.parameters = {{"flows", 0}};
  EXPECT_THROW(group_parameters(probe), Failure);
  probe.parameters = {{"flows", 257}};
  EXPECT_THROW(group_parameters(probe), Failure);
  probe.parameters = {{"flows", 64}};
  EXPECT_EQ(group_parameters(probe).at("flows"), 64U);
  probe.pattern = Pattern::halo;
  probe.parameters = {{"dimensions", 4}};
  EXPECT_THROW(group_parameters(probe), Failure);
  probe.pattern = Pattern::bisection;
  probe.parameters = {{"matchings", "many"}};
  try {
    group_parameters(probe);
    FAIL() << "a word passed for a number";
  } catch (const Failure& failure) {
    EXPECT_NE(std::string(failure.what()).find("matchings"), std::string::npos);
  }
}

TEST(GroupParameters, AreAsTheTableHasThemWhereAPlanSaysNothing) {
  PlanProbe probe;
  probe.pattern = Pattern::bisection;
  EXPECT_EQ(group_parameters(probe), (GroupParameters{{"matchings", 8}, {"seed", 1}}));
  EXPECT_EQ(rounds_of(Pattern::bisection, 4, {}), 8U);
  EXPECT_EQ(flows_of(group_parameters(probe)), 1U);
}

TEST(Table, EveryPatternOfManyRanksHasItsLinks) {
  for (std::size_t i = 0; i < names_of<Pattern>.size(); ++i) {
    const auto pattern = static_cast<Pattern>(i);
    const Family family = facts_of(pattern).family;
    const bool is_group = family == Family::lockstep || family == Family::flood;
    EXPECT_EQ(!links_of(pattern, 2, 0, {}).empty(), is_group) << name_of(pattern);
  }
}

using Members = std::vector<std::size_t>;

using words::Schedule;

class EverySize : public testing::TestWithParam<Schedule> {};
INSTANTIATE_TEST_SUITE_P(PairSchedule, EverySize, testing::Values(Schedule::alone, Schedule::rounds),
                         [](const auto& one) { return one.param == Schedule::rounds ? "InRounds" : "Alone"; });

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
  const PairSchedule schedule(4, Schedule::alone);
  std::vector<Members> turns;
  for (std::size_t turn = 0; turn < schedule.turns(); ++turn) turns.push_back(schedule.busy(turn));
  EXPECT_EQ(turns, (std::vector<Members>{{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}}));
}

TEST(PairSchedule, InRoundsAsManyMeetAtOnceAsCan) {
  EXPECT_EQ(PairSchedule(6, Schedule::rounds).turns(), 5U);
  EXPECT_EQ(PairSchedule(6, Schedule::rounds).busy(0).size(), 6U);
  EXPECT_EQ(PairSchedule(7, Schedule::rounds).turns(), 7U);
  EXPECT_EQ(PairSchedule(7, Schedule::rounds).busy(0).size(), 6U) << "one rests";
}

TEST(PairSchedule, OfHalvesAllMeetTheirCounterpartInOneTurn) {
  const PairSchedule six(6, Schedule::halves);
  EXPECT_EQ(six.turns(), 1U);
  EXPECT_EQ(six.busy(0), (Members{0, 1, 2, 3, 4, 5}));
  for (std::size_t member = 0; member < 3; ++member) {
    EXPECT_EQ(six.partner(0, member), member + 3);
    EXPECT_EQ(six.partner(0, member + 3), member);
  }
  EXPECT_EQ(PairSchedule(7, Schedule::halves).busy(0), (Members{0, 1, 2, 3, 4, 5})) << "the odd one is left over";
  EXPECT_EQ(PairSchedule(1, Schedule::halves).turns(), 0U);
}

}  // namespace
}  // namespace fabricbench

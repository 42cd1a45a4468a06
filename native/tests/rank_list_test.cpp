#include "core/rank_list.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace fabricbench {
namespace {

constexpr std::size_t run_bytes = 24;

TEST(RankList, IsAsShortAsItsOrderAllows) {
  EXPECT_EQ(RankList::first(65'536).pack().size(), run_bytes);
  EXPECT_EQ(RankList(std::vector{0, 2, 4, 6, 8}).pack().size(), run_bytes);
  EXPECT_EQ(RankList(std::vector{0, 0, 0, 3, 3, 3}).pack().size(), 2 * run_bytes);
  EXPECT_EQ(RankList::first(0).size(), 0U);
}

TEST(RankList, HasTheRanksThatItWasMadeOfHoweverTheyCame) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 500; ++trial) {
    std::vector<int> ranks;
    while (ranks.size() < static_cast<std::size_t>(trial % 40)) {
      const int first = static_cast<int>(random() % 20);
      const int step = static_cast<int>(random() % 4) - 1;
      for (unsigned i = 0; i <= random() % 5; ++i) ranks.push_back(first + step * static_cast<int>(i) + 5);
    }
    const RankList whole(ranks);
    EXPECT_EQ(whole.expanded(), ranks);
    const std::span<const int> all(ranks);
    for (std::size_t cut = 0; cut <= ranks.size(); ++cut) {
      RankList joined(all.first(cut));
      joined.append(RankList(all.subspan(cut)));
      EXPECT_EQ(joined.expanded(), ranks) << cut;
    }
    const RankList sent = RankList::unpack(whole.pack());
    EXPECT_EQ(sent, whole);
    for (std::size_t place = 0; place < ranks.size(); ++place) {
      EXPECT_EQ(sent[place], ranks[place]);
      EXPECT_EQ(sent.place_of(ranks[place]), std::ranges::find(ranks, ranks[place]) - ranks.begin());
    }
    EXPECT_FALSE(sent.place_of(1000));
    EXPECT_THROW(sent[ranks.size()], ControlError);
  }
}

TEST(RankList, OfBytesThatAreNoneIsRefused) {
  const std::string packed = RankList(std::vector{1, 2, 9}).pack();
  EXPECT_THROW(RankList::unpack(packed.substr(1)), ControlError);
  EXPECT_THROW(RankList::unpack(packed.substr(run_bytes)), ControlError) << "its first run is missing";
}

}  // namespace
}  // namespace fabricbench

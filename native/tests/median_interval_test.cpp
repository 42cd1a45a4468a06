#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <random>
#include <vector>

#include "core/stopping.hpp"

namespace fabricbench {
namespace {

TEST(MedianInterval, FiveSamplesAreTooFewForNinetyFivePercent) { EXPECT_FALSE(median_ranks(5, 0.95)); }

// P(Binomial(6, 1/2) = 0) = 1/64 = 1.6 % <= 2.5 %, and with 1: 7/64 = 10.9 %, so the extremes enclose the median.
TEST(MedianInterval, SixSamplesAreEnclosedByTheirExtremes) {
  const auto ranks = median_ranks(6, 0.95);
  ASSERT_TRUE(ranks);
  EXPECT_EQ(ranks->low, 0U);
  EXPECT_EQ(ranks->high, 5U);
}

// Binomial(20, 1/2): P(X <= 5) = 2.07 %, P(X <= 6) = 5.77 %; so the 6th and the 15th, as every table of the sign test
// says.
TEST(MedianInterval, TwentySamplesAreEnclosedByTheSixthAndTheFifteenth) {
  const auto ranks = median_ranks(20, 0.95);
  ASSERT_TRUE(ranks);
  EXPECT_EQ(ranks->low, 5U);
  EXPECT_EQ(ranks->high, 14U);
}

// At 99 %: P(X <= 3) = 0.13 %, P(X <= 4) = 0.59 % > 0.5 %; so the 4th and the 17th.
TEST(MedianInterval, MoreConfidenceWidensIt) {
  const auto ranks = median_ranks(20, 0.99);
  ASSERT_TRUE(ranks);
  EXPECT_EQ(ranks->low, 3U);
  EXPECT_EQ(ranks->high, 16U);
}

TEST(MedianInterval, TheNormalApproximationContinuesTheExactRanks) {
  const auto exact = median_ranks(1000, 0.95);
  const auto approximate = median_ranks(1001, 0.95);
  ASSERT_TRUE(exact && approximate);
  EXPECT_NEAR(static_cast<double>(exact->low), static_cast<double>(approximate->low), 1);
  EXPECT_NEAR(static_cast<double>(exact->low), 1000 / 2.0 - 1.96 * std::sqrt(1000.0) / 2, 1.5);
}

TEST(MedianInterval, TakesOrderStatisticsOfSamplesInAnyOrder) {
  std::vector<std::uint64_t> samples(20);
  std::iota(samples.begin(), samples.end(), 1);
  std::shuffle(samples.begin(), samples.end(), std::mt19937(7));
  const auto interval = median_interval(samples, 0.95);
  ASSERT_TRUE(interval);
  EXPECT_EQ(interval->low, 6U);
  EXPECT_EQ(interval->median, 10U);  // between the 10th and the 11th, in whole units
  EXPECT_EQ(interval->high, 15U);
}

TEST(MedianInterval, TheMedianOfAnOddNumberIsItsMiddleSample) {
  std::array<std::uint64_t, 7> samples{70, 10, 30, 20, 60, 40, 50};
  const auto interval = median_interval(samples, 0.95);
  ASSERT_TRUE(interval);
  EXPECT_EQ(interval->median, 40U);
  EXPECT_EQ(interval->low, 10U);
  EXPECT_EQ(interval->high, 70U);
}

TEST(MedianInterval, CoversTheMedianAsOftenAsItPromises) {
  std::mt19937 random(11);
  std::exponential_distribution<double> skewed(1.0);
  const double median = std::log(2.0) * 1e6;
  int covered = 0;
  constexpr int trials = 2000;
  for (int trial = 0; trial < trials; ++trial) {
    std::array<std::uint64_t, 50> samples{};
    for (auto& sample : samples) sample = static_cast<std::uint64_t>(skewed(random) * 1e6);
    const auto interval = median_interval(samples, 0.95);
    covered += static_cast<double>(interval->low) <= median && median <= static_cast<double>(interval->high) ? 1 : 0;
  }
  EXPECT_GE(covered, trials * 94 / 100);
  EXPECT_LE(covered, trials * 98 / 100);
}

}  // namespace
}  // namespace fabricbench

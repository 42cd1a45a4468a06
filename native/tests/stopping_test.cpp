#include "core/stopping.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <random>
#include <vector>

namespace fabricbench {
namespace {

constexpr Stopping rule{.minimum_samples = 20, .maximum_samples = 100, .maximum_seconds = 1, .relative_width = 0.02};

std::vector<std::uint64_t> steady(std::size_t count) { return std::vector<std::uint64_t>(count, 1000); }

std::vector<std::uint64_t> scattered(std::size_t count) {
  std::vector<std::uint64_t> samples;
  for (std::size_t i = 0; i < count; ++i) samples.push_back(i % 2 == 0 ? 500 : 1500);
  return samples;
}

std::optional<StopReason> decision(const Stopping& stopping, std::span<const std::uint64_t> samples, double seconds) {
  std::vector<std::uint64_t> scratch(stopping.maximum_samples);
  return StoppingRule(stopping, scratch).decide(samples, seconds);
}

TEST(StoppingRule, EndsByWidthWhenTheMedianIsKnownWellEnough) {
  EXPECT_EQ(decision(rule, steady(20), 0.1), StopReason::width);
}

TEST(StoppingRule, NeverEndsByWidthBelowTheMinimum) { EXPECT_FALSE(decision(rule, steady(19), 0.1)); }

TEST(StoppingRule, GoesOnWhileTheIntervalIsWide) { EXPECT_FALSE(decision(rule, scattered(50), 0.1)); }

TEST(StoppingRule, EndsByTimeEvenBelowTheMinimum) { EXPECT_EQ(decision(rule, scattered(3), 1.0), StopReason::time); }

TEST(StoppingRule, EndsByCount) { EXPECT_EQ(decision(rule, scattered(100), 0.1), StopReason::count); }

// The limits are 2 % on either side: with 1000 as the median, the 6th smallest and the 6th largest of 20 decide.
TEST(StoppingRule, TakesTheWidthOnEitherSide) {
  auto samples = steady(20);
  for (std::size_t i = 0; i < 6; ++i) samples[i] = 1020;
  EXPECT_EQ(decision(rule, samples, 0.1), StopReason::width);
  for (std::size_t i = 0; i < 6; ++i) samples[i] = 1021;
  EXPECT_FALSE(decision(rule, samples, 0.1));
}

TEST(StoppingRule, FirstAsksForTheMinimumThenForHalfAsManyAgain) {
  const StoppingRule stopping(rule, {});
  EXPECT_EQ(stopping.next_batch(0, 0, 1e-6), 20U);
  EXPECT_EQ(stopping.next_batch(40, 0.1, 1e-6), 20U);
}

TEST(StoppingRule, NeverAsksForMoreThanNumberAndTimeAllow) {
  const StoppingRule stopping(rule, {});
  EXPECT_EQ(stopping.next_batch(95, 0.1, 1e-6), 5U);
  EXPECT_EQ(stopping.next_batch(0, 0.0, 0.4), 3U);
  EXPECT_EQ(stopping.next_batch(5, 2.0, 0.4), 1U);
}

/// As a network behaves that something else slows down now and then: `fast` samples in a row, then `slow` ones that
/// take 35 % longer, each with its own small scatter.
std::vector<std::uint64_t> two_regimes(std::size_t count, std::size_t fast, std::size_t slow) {
  std::vector<std::uint64_t> samples;
  std::uint64_t state = 1;
  for (std::size_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005U + 1442695040888963407U;  // Knuth's linear congruential generator
    const std::uint64_t scatter = (state >> 33U) % 2000;
    const bool is_slow = i % (fast + slow) >= fast;
    samples.push_back((is_slow ? 13500 : 10000) + scatter / 2);
  }
  return samples;
}

constexpr Stopping long_rule{.minimum_samples = 20, .maximum_samples = 10000, .maximum_seconds = 10};

std::optional<MedianInterval> independent_interval(std::vector<std::uint64_t> samples) {
  return median_interval(samples, long_rule.confidence);
}

// 600 samples of which the last 250 are slow: taken as independent, their median is known to 1 % on either side.
TEST(StoppingRule, GoesOnWhereSamplesComeInRegimesThatAnIntervalOfIndependentSamplesDoesNotSee) {
  const auto samples = two_regimes(600, 350, 250);
  const auto naive = independent_interval(samples);
  ASSERT_TRUE(naive);
  EXPECT_LT(static_cast<double>(naive->high - naive->low), 0.04 * static_cast<double>(naive->median));
  EXPECT_GT(variance_inflation(samples, naive->median), 10);
  EXPECT_FALSE(decision(long_rule, samples, 1));
}

TEST(StoppingRule, EndsByWidthWhereAsManySlowSamplesAreSpreadOverAll) {
  const auto samples = two_regimes(1200, 7, 5);
  EXPECT_LT(variance_inflation(samples, independent_interval(samples)->median), 4);
  EXPECT_EQ(decision(long_rule, samples, 1), StopReason::width);
}

TEST(StoppingRule, EndsByWidthOnceEnoughRegimesHaveBeenSeen) {
  EXPECT_EQ(decision(long_rule, two_regimes(10000, 90, 10), 1), StopReason::width);
}

TEST(StoppingRule, DoesNotEndByWidthBeforeItsMinimumTimeSoThatASlowRegimeMayCome) {
  Stopping patient = rule;
  patient.minimum_seconds = 0.1;
  EXPECT_FALSE(decision(patient, steady(20), 0.035));
  EXPECT_EQ(decision(patient, steady(20), 0.1), StopReason::width);
  EXPECT_EQ(decision(patient, steady(100), 0.035), StopReason::count);
}

TEST(StoppingRule, NeverWaitsBeyondItsMaximumTime) {
  Stopping patient = rule;
  patient.minimum_seconds = 5;
  EXPECT_EQ(decision(patient, steady(20), 1.0), StopReason::width);
}

TEST(VarianceInflation, IsOneForEqualSamplesForAlternatingOnesAndForFew) {
  EXPECT_EQ(variance_inflation(steady(100), 1000), 1);
  EXPECT_EQ(variance_inflation(scattered(100), 1000), 1);
  EXPECT_EQ(variance_inflation(two_regimes(10, 5, 5), 10500), 1);
}

// Runs of 8 alike: a mean over 8 varies as a single sample does, eight times as much as of independent ones.
TEST(VarianceInflation, IsTheLengthOfRunsOfEqualSidesThatComeAtRandom) {
  std::vector<std::uint64_t> samples;
  std::uint64_t state = 7;
  for (int run = 0; run < 2000; ++run) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    samples.insert(samples.end(), 8, (state >> 40U) % 2 == 0 ? 900 : 1100);
  }
  EXPECT_NEAR(variance_inflation(samples, 1000), 8, 2);
}

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

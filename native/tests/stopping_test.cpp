#include "core/stopping.hpp"

#include <gtest/gtest.h>

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

TEST(StoppingRule, EndsByWidthWhenTheMedianIsKnownWellEnough) {
  EXPECT_EQ(StoppingRule(rule).decide(steady(20), 0.1), StopReason::width);
}

TEST(StoppingRule, NeverEndsByWidthBelowTheMinimum) { EXPECT_FALSE(StoppingRule(rule).decide(steady(19), 0.1)); }

TEST(StoppingRule, GoesOnWhileTheIntervalIsWide) { EXPECT_FALSE(StoppingRule(rule).decide(scattered(50), 0.1)); }

TEST(StoppingRule, EndsByTimeEvenBelowTheMinimum) {
  EXPECT_EQ(StoppingRule(rule).decide(scattered(3), 1.0), StopReason::time);
}

TEST(StoppingRule, EndsByCount) { EXPECT_EQ(StoppingRule(rule).decide(scattered(100), 0.1), StopReason::count); }

// The limits are 2 % on either side: with 1000 as the median, the 6th smallest and the 6th largest of 20 decide.
TEST(StoppingRule, TakesTheWidthOnEitherSide) {
  auto samples = steady(20);
  for (std::size_t i = 0; i < 6; ++i) samples[i] = 1020;
  EXPECT_EQ(StoppingRule(rule).decide(samples, 0.1), StopReason::width);
  for (std::size_t i = 0; i < 6; ++i) samples[i] = 1021;
  EXPECT_FALSE(StoppingRule(rule).decide(samples, 0.1));
}

TEST(StoppingRule, FirstAsksForTheMinimumThenForHalfAsManyAgain) {
  const StoppingRule stopping(rule);
  EXPECT_EQ(stopping.next_batch(0, 0, 1e-6), 20U);
  EXPECT_EQ(stopping.next_batch(40, 0.1, 1e-6), 20U);
}

TEST(StoppingRule, NeverAsksForMoreThanNumberAndTimeAllow) {
  const StoppingRule stopping(rule);
  EXPECT_EQ(stopping.next_batch(95, 0.1, 1e-6), 5U);
  EXPECT_EQ(stopping.next_batch(0, 0.0, 0.4), 3U);
  EXPECT_EQ(stopping.next_batch(5, 2.0, 0.4), 1U);
}

}  // namespace
}  // namespace fabricbench

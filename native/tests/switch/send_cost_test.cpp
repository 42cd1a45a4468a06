#include "switch/send_cost.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace fabricbench::emulated_switch {
namespace {

TEST(SendCost, SettlesAtTheMedianWhateverTheTailDoes) {
  SendCost cost;
  for (int i = 0; i < 2'000; ++i) cost.learn(64, i % 10 == 0 ? 1'000'000 : 2'400 + i % 7);
  EXPECT_NEAR(static_cast<double>(cost.estimate_ns(64)), 2'403, 30);
}

TEST(SendCost, SizesAreLearnedApart) {
  SendCost cost;
  const std::int64_t before_ns = cost.estimate_ns(1514);
  for (int i = 0; i < 500; ++i) cost.learn(64, 3'000);
  EXPECT_NEAR(static_cast<double>(cost.estimate_ns(64)), 3'000, 30);
  EXPECT_EQ(cost.estimate_ns(1514), before_ns);
}

TEST(SendCost, SamplesEveryFrameAtFirstAndFewLater) {
  SendCost cost;
  int samples = 0;
  for (int i = 0; i < 64 + 6'400; ++i) {
    if (!cost.wants_sample(1514)) continue;
    ++samples;
    cost.learn(1514, 1'500);
  }
  EXPECT_EQ(samples, 64 + 100);
}

TEST(SendCost, TakesFramesOfAnySize) {
  SendCost cost;
  for (const std::size_t bytes : {0U, 14U, 127U, 128U, 65'535U, 1'000'000U}) EXPECT_GT(cost.estimate_ns(bytes), 0);
}

}  // namespace
}  // namespace fabricbench::emulated_switch

#include "switch/lateness.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace fabricbench::emulated_switch {
namespace {

TEST(Lateness, StartsEmpty) {
  const Lateness lateness;
  EXPECT_EQ(lateness.summary().count, 0U);
  EXPECT_EQ(lateness.summary().p99, 0U);
}

TEST(Lateness, QuantilesAreWithinAnEighthAndTheMaximumIsExact) {
  Lateness lateness;
  for (std::int64_t value = 1; value <= 10'000; ++value) lateness.add(value);
  const Lateness::Summary summary = lateness.summary();
  EXPECT_EQ(summary.count, 10'000U);
  EXPECT_GE(summary.p50, 5'000U);
  EXPECT_LE(summary.p50, 5'000U * 9 / 8);
  EXPECT_GE(summary.p99, 9'900U);
  EXPECT_EQ(summary.maximum, 10'000U);
}

TEST(Lateness, AnEarlyFrameIsNotLate) {
  Lateness lateness;
  lateness.add(-5'000);
  EXPECT_EQ(lateness.summary().maximum, 0U);
  EXPECT_EQ(lateness.summary().count, 1U);
}

TEST(Lateness, TakesAnyValue) {
  Lateness lateness;
  lateness.add(std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(lateness.summary().p50, static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()));
}

}  // namespace
}  // namespace fabricbench::emulated_switch

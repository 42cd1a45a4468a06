#include "base/clock.hpp"

#include <gtest/gtest.h>
#include <time.h>

#include "core/watchdog.hpp"

namespace fabricbench {
namespace {

TEST(Clock, WhatTheHarnessCostsIsMeasuredAndPlausible) {
  const ClockInfo info = measure_clock();
  EXPECT_GT(info.overhead_ns, 1);
  EXPECT_LT(info.overhead_ns, 100'000);
  EXPECT_GE(info.loop_floor_ns, 0);
  EXPECT_GT(info.resolution_ns, 0);
}

TEST(Watchdog, InterruptsASleepThatHasNoBoundOfItsOwn) {
  const Watchdog watchdog(5e-3);
  constexpr timespec hour{3600, 0};
  EXPECT_EQ(nanosleep(&hour, nullptr), -1);
}

TEST(Patience, IsOverAfterTheBoundAndNotBefore) {
  Patience patience;
  EXPECT_FALSE(patience.is_over(2'000'000));
  constexpr timespec pause{0, 3'000'000};
  nanosleep(&pause, nullptr);
  EXPECT_TRUE(patience.is_over(2'000'000));
}

}  // namespace
}  // namespace fabricbench

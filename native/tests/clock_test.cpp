#include "base/clock.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "core/watchdog.hpp"

namespace fabricbench {
namespace {

TEST(Clock, WhatTheHarnessCostsIsMeasuredAndPlausible) {
  const ClockInfo info = measure_clock();
  EXPECT_TRUE(info.name == "CLOCK_MONOTONIC" || info.name == "TSC");
  EXPECT_GT(info.overhead_ns, 1);
  EXPECT_LT(info.overhead_ns, 100'000);
  EXPECT_GE(info.loop_floor_ns, 0);
  EXPECT_GT(info.resolution_ns, 0);
  EXPECT_GT(info.timebase.ns_per_tick, 0);
}

TEST(Clock, TheCounterIsTrustedOnlyWhereTheKernelKeepsItsTimeByIt) {
  const std::string path = testing::TempDir() + "current_clocksource-" + std::to_string(getpid());
  for (const auto& [name, is_trusted] :
       {std::pair{"tsc", true}, {"hpet", false}, {"acpi_pm", false}, {"kvm-clock", false}}) {
    std::ofstream(path) << name << '\n';
    EXPECT_EQ(kernel_trusts_counter(path), is_trusted) << name;
  }
  std::filesystem::remove(path);
  EXPECT_FALSE(kernel_trusts_counter(path)) << "nobody says so";
  EXPECT_TRUE(kernel_trusts_counter() || !measure_clock().is_counter);
}

TEST(Clock, TheCounterAgreesWithTheKernelsClock) {
  if (!has_counter_clock) GTEST_SKIP() << "this processor's counter is not used";
  const std::uint64_t ns = KernelClock::now();
  const std::uint64_t ticks = CounterClock::now();
  constexpr timespec pause{0, 50'000'000};
  nanosleep(&pause, nullptr);
  const double elapsed_ns = static_cast<double>(KernelClock::now() - ns);
  const double elapsed_ticks = static_cast<double>(CounterClock::now() - ticks);
  const ClockInfo info = measure_clock();
  if (!info.is_counter) GTEST_SKIP() << "the kernel's clock was chosen";
  EXPECT_NEAR(elapsed_ticks * info.timebase.ns_per_tick / elapsed_ns, 1.0, 0.01);
}

TEST(Timebase, ConvertsBothWays) {
  const Timebase timebase{0.5};
  EXPECT_EQ(timebase.to_ns(200), 100U);
  EXPECT_EQ(timebase.to_ticks(1e-6), 2000U);
  EXPECT_DOUBLE_EQ(timebase.to_seconds(2'000'000'000), 1.0);
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

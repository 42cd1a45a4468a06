#include "pattern/flood_round.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/merging.hpp"

namespace fabricbench {
namespace {

PlanProbe probe_of(double seconds, std::size_t warmup = 10) {
  PlanProbe probe;
  probe.pattern = Pattern::ring;
  probe.stopping.maximum_seconds = seconds;
  probe.warmup_samples = warmup;
  return probe;
}

TEST(FloodSchedule, DividesTheTimeIntoWindowsOfAbout20Ms) {
  const FloodSchedule schedule = flood_schedule(probe_of(0.5), 1);
  EXPECT_EQ(schedule.windows, 25U);
  EXPECT_EQ(schedule.window_ns, 20'000'000U);
  EXPECT_EQ(schedule.warmup_windows, 10U);
  EXPECT_DOUBLE_EQ(schedule.measured_seconds(), 0.5);
}

TEST(FloodSchedule, RoundsShareTheTime) {
  const FloodSchedule schedule = flood_schedule(probe_of(0.5), 8);
  EXPECT_EQ(schedule.windows, 3U);
  EXPECT_NEAR(static_cast<double>(schedule.measured_ns()), 0.5e9 / 8, 10);
  EXPECT_EQ(schedule.warmup_windows, 3U) << "the warm-up takes no longer than the measurement";
}

TEST(FloodSchedule, AShortCellIsOneWindowAndALongOneHasNoMoreThanSamplesAreWanted) {
  EXPECT_EQ(flood_schedule(probe_of(0.001), 1).windows, 1U);
  PlanProbe probe = probe_of(100);
  probe.stopping.maximum_samples = 50;
  const FloodSchedule schedule = flood_schedule(probe, 1);
  EXPECT_EQ(schedule.windows, 50U);
  EXPECT_EQ(schedule.window_ns, 2'000'000'000U);
}

CellReport report_of(std::vector<std::uint64_t> times, std::vector<std::uint64_t> bytes) {
  CellReport report;
  report.measured = {std::move(times), std::move(bytes)};
  return report;
}

TEST(JoinWindows, KeepsWindowsThatHoldEnough) {
  CellReport report = report_of({20, 20, 21}, {100, 110, 90});
  join_windows(report, 100);
  EXPECT_EQ(report.measured.time_ns, (std::vector<std::uint64_t>{20, 20, 21}));
  EXPECT_EQ(report.outcome.bytes_per_sample, 100U);
}

TEST(JoinWindows, JoinsThoseThatHoldLittleAndLosesNothing) {
  CellReport report = report_of({20, 20, 20, 20, 20, 20, 20}, {0, 50, 0, 50, 50, 0, 50});
  join_windows(report, 60);
  EXPECT_EQ(report.measured.time_ns.size(), 3U);
  const auto sum = [](const std::vector<std::uint64_t>& all) {
    return std::accumulate(all.begin(), all.end(), std::uint64_t{0});
  };
  EXPECT_EQ(sum(report.measured.time_ns), 140U);
  EXPECT_EQ(sum(report.measured.bytes), 200U);
  EXPECT_EQ(report.outcome.bytes_per_sample, 66U);
}

TEST(JoinWindows, HasOneSampleAtLeast) {
  CellReport report = report_of({20, 20}, {0, 8});
  join_windows(report, 1'000'000);
  EXPECT_EQ(report.measured.time_ns, (std::vector<std::uint64_t>{40}));
  EXPECT_EQ(report.measured.bytes, (std::vector<std::uint64_t>{8}));
}

TEST(JoinWindows, FailsTheCellInWhichNothingArrived) {
  CellReport report = report_of({20, 20}, {0, 0});
  join_windows(report, 1000);
  ASSERT_TRUE(report.failure);
  EXPECT_EQ(report.failure->code, FailureCode::timeout);
}

TEST(MergedFloods, AddUpTheBytesOfWindowsAndAverageTheirTimes) {
  const CellReport sender;
  const CellReport merged =
      merge({sender, report_of({20, 22}, {100, 110}), report_of({22, 24}, {10, 20}), report_of({24, 20}, {1, 2})},
            Family::flood);
  EXPECT_EQ(merged.measured.bytes, (std::vector<std::uint64_t>{111, 132}));
  EXPECT_EQ(merged.measured.time_ns, (std::vector<std::uint64_t>{22, 22}));
}

}  // namespace
}  // namespace fabricbench

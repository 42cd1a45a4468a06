#include "core/clock_sync.hpp"

#include <gtest/gtest.h>

namespace fabricbench {
namespace {

/// Points of a clock that is `offset` behind and drifts, seen through round trips of which the answer comes late by
/// `asymmetry` of the bound.
std::vector<OffsetPoint> points_of(double offset_ns, double drift, double bound_ns, double asymmetry) {
  std::vector<OffsetPoint> points;
  for (int i = 0; i < 10; ++i) {
    const double local = 1e12 + 1e9 * i;
    const double error = (i % 2 == 0 ? 1 : -1) * asymmetry * bound_ns;
    points.push_back({local, offset_ns + drift * (local - 1e12) + error, bound_ns});
  }
  return points;
}

double error_at(const ClockModel& model, double offset_ns, double drift, double local_ns) {
  const double truth = local_ns + offset_ns + drift * (local_ns - 1e12);
  return std::abs(static_cast<double>(model.to_global(static_cast<std::uint64_t>(local_ns))) - truth);
}

TEST(ClockSync, FindsOffsetAndDrift) {
  constexpr double drift = 25e-6;
  const ClockModel model = fit_clock(points_of(-3e9, drift, 20'000, 0.3));
  EXPECT_NEAR(model.drift, drift, 2e-6);
  EXPECT_LT(error_at(model, -3e9, drift, 1e12 + 4.5e9), model.error_ns);
  EXPECT_LT(error_at(model, -3e9, drift, 1e12), model.error_ns);
  EXPECT_LT(error_at(model, -3e9, drift, 1e12 + 9e9), model.error_ns);
}

TEST(ClockSync, SeesNoDriftBelowTheBound) {
  const ClockModel model = fit_clock(points_of(500, 1e-9, 20'000, 0.5));
  EXPECT_EQ(model.drift, 0);
  EXPECT_LT(error_at(model, 500, 1e-9, 1e12 + 9e9), model.error_ns);
}

TEST(ClockSync, LeavesOutPointsThatWereHeldUp) {
  std::vector<OffsetPoint> points = points_of(1000, 0, 20'000, 0.1);
  points[3].bound_ns = 5e6;
  points[3].offset_ns += 4e6;
  EXPECT_LT(fit_clock(points).error_ns, 50'000);
}

TEST(ClockSync, TurnsTimesThereAndBack) {
  const ClockModel model{.offset_ns = -7e9, .drift = 30e-6, .at_ns = 1'000'000'000'000};
  const std::uint64_t local = 1'000'500'000'000;
  EXPECT_NEAR(static_cast<double>(model.to_local(model.to_global(local))), static_cast<double>(local), 2);
}

}  // namespace
}  // namespace fabricbench

#include "core/clock_sync.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>

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

TEST(ClockSync, BoundsTheDriftThatItCannotTell) {
  const ClockModel model = fit_clock(points_of(500, 1e-9, 20'000, 0.5));
  EXPECT_LT(error_at(model, 500, 1e-9, 1e12 + 9e9), model.error_at(1'009'000'000'000));
  EXPECT_LT(error_at(model, 500, 1e-9, 1e12 + 60e9), model.error_at(1'060'000'000'000));
}

TEST(ClockSync, TakesTwoPointsForNoLine) {
  std::vector<OffsetPoint> points = points_of(0, 20e-6, 1000, 0.1);
  points.resize(2);
  const ClockModel model = fit_clock(points);
  EXPECT_EQ(model.drift, 0);
  EXPECT_GE(model.drift_error, 20e-6);
}

/// A clock that drifts, seen at the given times through exchanges of which each way took a little longer at random, and
/// one way always took longer; the best of twelve.
std::vector<OffsetPoint> simulated(std::mt19937_64& random, const std::vector<double>& times_ns, double half_ns,
                                   double drift) {
  std::exponential_distribution<double> extra(1 / (half_ns * 0.05));
  std::vector<OffsetPoint> points;
  for (const double time_ns : times_ns) {
    double forth = 1e18;
    double back = 0;
    for (int i = 0; i < 12; ++i) {
      const double a = extra(random);
      const double b = extra(random);
      if (a + b < forth + back) {
        forth = a;
        back = b;
      }
    }
    const double half = half_ns + (forth + back) / 2;
    const double asymmetry = 0.3 * half_ns + (forth - back) / 2;
    points.push_back({1e12 + time_ns, drift * time_ns + asymmetry, half});
  }
  return points;
}

TEST(ClockSync, CoversTheTruthWithTheSpacingThatItHasAtFirstAndLater) {
  std::vector<double> at_first;
  for (int i = 0; i < 10; ++i) at_first.push_back(50.5e6 * i);
  std::vector<double> later = at_first;
  for (int i = 0; i < 30; ++i) later.push_back(1e9 + 3e8 * (i / 3) + 1e6 * (i % 3));
  std::mt19937_64 random(1);
  for (const std::vector<double>& times_ns : {at_first, later}) {
    for (const double half_ns : {1e3, 5e3, 20e3}) {
      for (const double drift : {0.1e-6, 1e-6, 5e-6, 20e-6}) {
        constexpr int fits = 500;
        int covered = 0;
        int used = 0;
        for (int i = 0; i < fits; ++i) {
          const ClockModel model = fit_clock(simulated(random, times_ns, half_ns, drift));
          used += model.drift != 0 ? 1 : 0;
          bool is_covered = true;
          for (const double age_ns : {0.0, 1e9, 10e9, 60e9}) {
            const double local_ns = 1e12 + times_ns.back() + age_ns;
            const double bound_ns = model.error_at(static_cast<std::uint64_t>(local_ns));
            is_covered = is_covered && error_at(model, 0, drift, local_ns) <= bound_ns;
          }
          covered += is_covered ? 1 : 0;
        }
        EXPECT_GE(covered, fits - 5) << half_ns << " ns, drift " << drift;
        EXPECT_EQ(used, fits) << half_ns << " ns, drift " << drift;
      }
    }
  }
}

TEST(ClockSync, KnowsADriftWellEnoughForACallOfAMicrosecond) {
  std::vector<double> times_ns;
  for (int i = 0; i < 30; ++i) times_ns.push_back(3e8 * (i / 3) + 1e6 * (i % 3));
  std::mt19937_64 random(1);
  const ClockModel model = fit_clock(simulated(random, times_ns, 1e3, 20e-6));
  EXPECT_NEAR(model.drift, 20e-6, 0.05e-6);
  EXPECT_LT(model.drift_error, 0.2e-6);
}

/// A clock seen at the beginning and then three cells a second for six seconds, up to the cell that is looked at.
struct Seen {
  OffsetHistory history;
  double now_ns = 0;
};

constexpr double cell_ns = 2e8;
constexpr int fresh_points = 5;

void see(std::mt19937_64& random, Seen& seen, double half_ns, double offset_ns) {
  OffsetPoint point = simulated(random, {seen.now_ns}, half_ns, 0).front();
  point.offset_ns += offset_ns;
  seen.history.add(point);
}

Seen steady(std::mt19937_64& random, double half_ns) {
  Seen seen;
  for (int i = 0; i < 10; ++i, seen.now_ns += 50.5e6) see(random, seen, half_ns, 0);
  while (seen.now_ns < 6e9) {
    seen.now_ns += cell_ns;
    for (int i = 0; i < fresh_points; ++i, seen.now_ns += 1.1e6) see(random, seen, half_ns, 0);
  }
  return seen;
}

TEST(ClockSync, SeesWhatAClockDidDuringACellAndNotAShareOfIt) {
  std::mt19937_64 random(1);
  constexpr int trials = 100;
  for (const double half_ns : {2e3, 20e3}) {
    for (const double rate : {0.0, 100e-6, 500e-6}) {
      int covered = 0;
      double shifts = 0;
      double truth = 0;
      for (int trial = 0; trial < trials; ++trial) {
        Seen seen = steady(random, half_ns);
        const ClockModel before = fit_clock(seen.history.points());
        const double begin_ns = seen.now_ns;
        seen.now_ns += cell_ns;
        std::vector<OffsetPoint> fresh;
        for (int i = 0; i < fresh_points; ++i, seen.now_ns += 1.1e6) {
          truth = rate * (seen.now_ns - begin_ns);
          see(random, seen, half_ns, truth);
          fresh.push_back(seen.history.points().back());
        }
        const double shift_ns = shift_from(before, fresh, half_ns).shift_ns;
        const auto local_ns = static_cast<std::uint64_t>(1e12 + seen.now_ns);
        const double bound_ns = std::abs(shift_ns) + fit_clock(seen.history.points()).error_at(local_ns);
        const auto model_ns = static_cast<double>(before.to_global(local_ns) - static_cast<std::int64_t>(local_ns));
        covered += std::abs(truth - model_ns) <= bound_ns ? 1 : 0;
        shifts += shift_ns / trials;
      }
      EXPECT_EQ(covered, trials) << half_ns << " ns, rate " << rate;
      EXPECT_NEAR(shifts, truth, 0.03 * truth + 0.02 * half_ns) << half_ns << " ns, rate " << rate;
    }
  }
}

TEST(ClockSync, ForgetsALineThatAClockHasLeftAndKeepsOneThatItKeeps) {
  std::mt19937_64 random(1);
  int kept = 0;
  for (int trial = 0; trial < 100; ++trial) {
    Seen seen = steady(random, 5e3);
    kept += seen.history.points().size() > 100 ? 1 : 0;
    see(random, seen, 5e3, 20e3);
    EXPECT_EQ(seen.history.points().size(), 1U);
  }
  EXPECT_GE(kept, 70);
}

TEST(ClockSync, TellsHowFarAnyTwoRanksAreApart) {
  const ClockCheck first{};
  const ClockCheck ahead{.model = {}, .shift_ns = 30, .noise_ns = 3, .error_ns = 100};
  const ClockCheck behind{.model = {}, .shift_ns = -50, .noise_ns = 4, .error_ns = 400};
  const ClockSpread all = spread_of({first, ahead, behind});
  EXPECT_EQ(all.shift_ns, 80);
  EXPECT_EQ(all.error_ns, 500);
  EXPECT_EQ(all.noise_ns, 7);
  EXPECT_EQ(spread_of({behind}).shift_ns, 0);
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

TEST(ClockSync, KnowsOneClockByItsBootWhereTheKernelHasNoNamespacesOfTime) {
  const std::filesystem::path proc = std::filesystem::path(testing::TempDir()) / "proc-of-clocks";
  std::filesystem::remove_all(proc);
  std::filesystem::create_directories(proc / "sys/kernel/random");
  EXPECT_EQ(clock_identity(proc), "");
  std::ofstream(proc / "sys/kernel/random/boot_id") << "9a249a60\n";
  EXPECT_EQ(clock_identity(proc), "");  // nobody knows of its namespaces
  std::filesystem::create_directories(proc / "self/ns");
  EXPECT_EQ(clock_identity(proc), "9a249a60");
  std::filesystem::create_symlink("time:[4026531834]", proc / "self/ns/time");
  EXPECT_EQ(clock_identity(proc), "9a249a60 time:[4026531834]");
}

}  // namespace
}  // namespace fabricbench

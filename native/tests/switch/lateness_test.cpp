#include "switch/lateness.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "switch/lateness_file.hpp"

namespace fabricbench::emulated_switch {
namespace {

using nlohmann::json;

constexpr std::int64_t kWindow = LatenessSeries::kWindowNs;
constexpr std::int64_t kLongAfter = 1'000'000 * kWindow;

std::vector<json> taken(LatenessSeries& series, std::int64_t now_ns = kLongAfter) {
  std::vector<json> windows;
  series.take(now_ns, [&](const LatenessWindow& window) { windows.push_back(json::parse(line_of(window, 0))); });
  return windows;
}

std::uint64_t frames_of(const json& window) {
  std::uint64_t frames = 0;
  for (const json& pair : window["frames"]) frames += pair[1].get<std::uint64_t>();
  return frames;
}

TEST(LatenessSeries, AFloodsLatenessStaysInItsOwnWindows) {
  LatenessSeries series;
  for (std::int64_t i = 0; i < 100; ++i) series.add(5 * kWindow + i, 1'200'000);
  for (std::int64_t i = 0; i < 100; ++i) series.add(7 * kWindow + i, 100);
  const std::vector<json> windows = taken(series);
  ASSERT_EQ(windows.size(), 2U);
  EXPECT_EQ(windows[0]["begin_unix_ns"], 5 * kWindow);
  EXPECT_EQ(windows[0]["end_unix_ns"], 6 * kWindow);
  EXPECT_EQ(windows[0]["maximum"], 1'200'000);
  EXPECT_EQ(windows[1]["begin_unix_ns"], 7 * kWindow);
  EXPECT_EQ(windows[1]["maximum"], 100);
  ASSERT_EQ(windows[1]["frames"].size(), 1U);
  EXPECT_GE(windows[1]["frames"][0][0], 100);
  EXPECT_LE(windows[1]["frames"][0][0], 100 * 9 / 8);
  EXPECT_EQ(windows[1]["frames"][0][1], 100);
}

TEST(LatenessSeries, TheWindowOfNowIsTakenOnceItIsOver) {
  LatenessSeries series;
  series.add(3 * kWindow + 5, 10);
  EXPECT_TRUE(taken(series, 3 * kWindow + 6).empty());
  EXPECT_TRUE(taken(series, 4 * kWindow).empty());  // a frame may be on its way to being counted
  EXPECT_EQ(taken(series, 4 * kWindow + LatenessSeries::kGraceNs).size(), 1U);
  EXPECT_TRUE(taken(series).empty());
}

TEST(LatenessSeries, AFrameThatFollowsEndsTheWindowBefore) {
  LatenessSeries series;
  series.add(3 * kWindow, 10);
  series.add(4 * kWindow, 20);
  EXPECT_EQ(taken(series, 4 * kWindow).size(), 1U);
}

TEST(LatenessSeries, AFullRingLosesTheNewestWindowsAndCountsThem) {
  LatenessSeries series;
  const auto slots = static_cast<std::int64_t>(LatenessSeries::kSlots);
  for (std::int64_t i = 0; i < slots + 3; ++i) series.add(i * kWindow, i);
  EXPECT_EQ(series.lost(), 3U);
  EXPECT_EQ(taken(series).size(), LatenessSeries::kSlots);
  series.add((slots + 9) * kWindow, 1);
  const std::vector<json> windows = taken(series);
  ASSERT_EQ(windows.size(), 1U);
  EXPECT_EQ(windows[0]["begin_unix_ns"], (slots + 9) * kWindow);
  EXPECT_EQ(frames_of(windows[0]), 1U);
}

TEST(LatenessSeries, TakesAnyLateness) {
  LatenessSeries series;
  series.add(0, -5'000);
  series.add(0, std::numeric_limits<std::int64_t>::max());
  const std::vector<json> windows = taken(series);
  ASSERT_EQ(windows.size(), 1U);
  EXPECT_EQ(windows[0]["frames"].front()[0], 0);
  EXPECT_EQ(windows[0]["maximum"], LatenessWindow::kLargest);
  EXPECT_EQ(windows[0]["frames"].back()[0], LatenessWindow::kLargest);
}

/// The length of the union of intervals, by counting.
std::uint64_t covered(const std::vector<std::pair<std::int64_t, std::int64_t>>& held) {
  std::set<std::int64_t> points;
  for (const auto& [due, left] : held) {
    for (std::int64_t at = due; at < left; ++at) points.insert(at);
  }
  return points.size();
}

TEST(HeldTime, FramesOfAQueueThatWaitTogetherHoldTheNetworkUpOnce) {
  HeldTime held;
  EXPECT_EQ(held.add(100, 100), 0U);
  EXPECT_EQ(held.add(100, 95), 0U);  // early
  EXPECT_EQ(held.add(1'000, 1'500), 500U);
  EXPECT_EQ(held.add(1'100, 1'510), 10U);
  EXPECT_EQ(held.add(1'200, 1'520), 10U);
  EXPECT_EQ(held.add(2'000, 2'100), 100U);
  EXPECT_EQ(held.add(1'600, 2'110), 400U + 10U);                 // of another port, due before what that one just sent
  EXPECT_EQ(held.add(900, 2'110), 2'110U - 900U - 520U - 510U);  // due long before: what is not yet counted
}

TEST(HeldTime, AFrameThatIsTriedAgainWhileOthersLeaveHoldsForAllOfIt) {
  HeldTime held;
  std::uint64_t sum = 0;
  for (std::int64_t at = 20'000; at < 5'000'000; at += 20'000) sum += held.add(at - 1'000, at);
  sum += held.add(0, 5'000'000);
  EXPECT_EQ(sum, 5'000'000U);
}

TEST(HeldTime, WhatIsForgottenIsCountedFromThenOn) {
  HeldTime held;
  const auto stretches = static_cast<std::int64_t>(HeldTime::kStretches);
  for (std::int64_t i = 0; i <= stretches; ++i) held.add(10 * i, 10 * i + 4);
  // The oldest stretch, from 0 to 4, is forgotten: of all gaps of 6 after it, and until now.
  EXPECT_EQ(held.add(0, 10 * stretches + 10), static_cast<std::uint64_t>(6 * stretches + 6));
}

TEST(HeldTime, IsTheUnionOfAllThatIsHeld) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    HeldTime held;
    std::uint64_t sum = 0;
    std::vector<std::pair<std::int64_t, std::int64_t>> frames;
    std::int64_t now = 0;
    for (int pass = 0; pass < 20; ++pass) {
      const std::int64_t since = now;
      now += std::uniform_int_distribution<std::int64_t>(1, 30)(random);
      const auto number = std::uniform_int_distribution<int>(0, 4)(random);
      for (int frame = 0; frame < number; ++frame) {
        const std::int64_t earliest = pass % 5 == 0 ? std::int64_t{0} : since;
        const std::int64_t due = std::uniform_int_distribution<std::int64_t>(earliest, now)(random);
        frames.emplace_back(due, now);
        sum += held.add(due, now);
        now += std::uniform_int_distribution<std::int64_t>(0, 2)(random);
      }
    }
    EXPECT_EQ(sum, covered(frames)) << "in round " << round;
  }
}

TEST(LatenessSeries, AWindowTellsForHowLongFramesWereHeldInIt) {
  LatenessSeries series;
  series.add(1'000, 400);
  series.add(1'010, 400);
  series.add(kWindow + 100, 30);
  const std::vector<json> windows = taken(series);
  ASSERT_EQ(windows.size(), 2U);
  EXPECT_EQ(windows[0]["held_ns"], 410);
  EXPECT_EQ(windows[1]["held_ns"], 30);
  series.hold(3 * kWindow, 3 * kWindow + 70);  // of a frame that was given up
  const std::vector<json> next = taken(series);
  ASSERT_EQ(next.size(), 1U);
  EXPECT_EQ(next[0]["held_ns"], 70);
  EXPECT_TRUE(next[0]["frames"].empty());
}

TEST(LatenessSeries, WhatOneThreadAddsAnotherTakesOnceEach) {
  LatenessSeries series;
  constexpr std::int64_t kFrames = 400'000;
  constexpr std::int64_t kApart = kWindow / 1'000;  // 400 windows in all, fewer than the ring holds
  std::atomic<bool> is_done = false;
  std::jthread adder([&] {
    for (std::int64_t i = 0; i < kFrames; ++i) series.add(i * kApart, i % 5'000);
    is_done = true;
  });
  std::uint64_t frames = 0;
  std::int64_t last_begin = -1;
  const auto take = [&](std::int64_t now_ns) {
    for (const json& window : taken(series, now_ns)) {
      EXPECT_GT(window["begin_unix_ns"], last_begin);
      last_begin = window["begin_unix_ns"];
      frames += frames_of(window);
    }
  };
  while (!is_done) take(0);
  take(kLongAfter);
  EXPECT_EQ(frames, static_cast<std::uint64_t>(kFrames));
  EXPECT_EQ(series.lost(), 0U);
}

class LatenessFiles : public testing::Test {
 protected:
  LatenessFiles() : path(testing::TempDir() + "lateness-" + std::to_string(getpid()) + ".jsonl") {}
  ~LatenessFiles() override {
    std::filesystem::remove(path);
    std::filesystem::remove(path + ".old");
  }

  static std::vector<json> lines_of(const std::string& path) {
    std::vector<json> lines;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) lines.push_back(json::parse(line));
    return lines;
  }

  std::string path;
};

TEST_F(LatenessFiles, WindowsAreAppendedWithTheTimeOfDay) {
  LatenessSeries series;
  LatenessFile file(path);
  series.add(0, 10);  // at boot: long over
  file.append(series);
  series.add(2 * kWindow, 20);
  file.append(series);
  const std::vector<json> lines = lines_of(path);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_NEAR(lines[1]["begin_unix_ns"].get<double>() - lines[0]["begin_unix_ns"].get<double>(), 2 * kWindow, 1e6);
  EXPECT_GT(lines[0]["begin_unix_ns"], 0);
}

TEST_F(LatenessFiles, TwoFilesAreKeptAndTheOldestWindowsDropped) {
  constexpr std::uint64_t kLargest = 1'000;
  LatenessSeries series;
  LatenessFile file(path, kLargest);
  for (std::int64_t i = 0; i < 100; ++i) {
    series.add(i * kWindow, i);
    file.append(series);
  }
  EXPECT_LE(std::filesystem::file_size(path), kLargest);
  EXPECT_LE(std::filesystem::file_size(path + ".old"), kLargest);
  const std::vector<json> old = lines_of(path + ".old");
  const std::vector<json> now = lines_of(path);
  EXPECT_EQ(now.back()["maximum"], 99);
  EXPECT_EQ(old.back()["maximum"].get<int>() + 1, now.front()["maximum"].get<int>());
  EXPECT_GT(old.front()["maximum"], 0);
}

TEST_F(LatenessFiles, ALineThatAFullDiskCutShortTakesNoOtherWithIt) {
  constexpr int kBatch = 200;  // longer than a stream's buffer, as on a busy network
  LatenessSeries series;
  LatenessFile file(path);
  const auto append = [&](int batch) {
    for (int i = batch * kBatch; i < (batch + 1) * kBatch; ++i) series.add(i * kWindow, i);
    file.append(series);
  };
  append(0);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto previous = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit full{std::filesystem::file_size(path) + 20, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &full);
  append(1);
  append(2);
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, previous);
  append(3);
  std::vector<int> readable;
  std::ifstream written(path);
  for (std::string line; std::getline(written, line);) {
    if (json::accept(line)) readable.push_back(json::parse(line)["maximum"].get<int>());
  }
  std::vector<int> expected(2 * kBatch);
  for (int i = 0; i < kBatch; ++i) {
    expected[static_cast<std::size_t>(i)] = i;
    expected[static_cast<std::size_t>(kBatch + i)] = 3 * kBatch + i;
  }
  EXPECT_EQ(readable, expected);
}

TEST_F(LatenessFiles, WithoutAPathNothingIsKept) {
  LatenessSeries series;
  LatenessFile file("");
  series.add(0, 10);
  file.append(series);
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_TRUE(taken(series).empty());
}

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

#include "pattern/payload.hpp"

#include <gtest/gtest.h>

namespace fabricbench {
namespace {

TEST(SequenceTracker, CountsNothingWhenAllComesInOrder) {
  SequenceTracker tracker(10);
  for (std::uint32_t i = 10; i < 20; ++i) EXPECT_TRUE(tracker.note(i));
  const Counters counters = tracker.counters();
  EXPECT_EQ(counters.sent, 10U);
  EXPECT_EQ(counters.lost + counters.reordered + counters.duplicated, 0U);
}

TEST(SequenceTracker, AGapIsLostUntilItsMessageComesLate) {
  SequenceTracker tracker(1);
  for (const std::uint32_t i : {1U, 2U, 5U}) tracker.note(i);
  EXPECT_EQ(tracker.counters().lost, 2U);
  EXPECT_TRUE(tracker.note(3));
  EXPECT_EQ(tracker.counters().lost, 1U);
  EXPECT_EQ(tracker.counters().reordered, 1U);
}

TEST(SequenceTracker, ADoubleIsNotCountedAsArrived) {
  SequenceTracker tracker(1);
  tracker.note(1);
  tracker.note(2);
  EXPECT_FALSE(tracker.note(1));
  EXPECT_EQ(tracker.counters().duplicated, 1U);
  EXPECT_EQ(tracker.counters().lost, 0U);
}

TEST(SequenceTracker, CountingStartsAnewForTheMeasuredPhase) {
  SequenceTracker tracker(1);
  for (const std::uint32_t i : {1U, 4U, 5U}) tracker.note(i);
  tracker.start_counting();
  tracker.note(6);
  EXPECT_EQ(tracker.counters().sent, 1U);
  EXPECT_EQ(tracker.counters().lost, 0U);
}

TEST(SequenceTracker, NumbersMayWrapAround) {
  SequenceTracker tracker(0xfffffffe);
  for (const std::uint32_t i : {0xfffffffeU, 0xffffffffU, 0U, 1U}) EXPECT_TRUE(tracker.note(i));
  EXPECT_EQ(tracker.counters().sent, 4U);
  EXPECT_EQ(tracker.counters().lost, 0U);
}

}  // namespace
}  // namespace fabricbench

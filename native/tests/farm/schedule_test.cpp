#include "farm/schedule.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace fabricbench::farm {
namespace {

/// The job that a worker gets; -1 for none.
int job_of(Schedule& schedule, std::size_t worker) {
  const auto given = schedule.next(worker);
  return given ? given->job : -1;
}

TEST(Schedules, GiveEachJobOnceAndNoMoreThanThereIsRoomFor) {
  Schedule schedule(5, 0, {"a", "b"}, 2);
  EXPECT_EQ(job_of(schedule, 0), 0);
  EXPECT_EQ(job_of(schedule, 1), 1);
  EXPECT_EQ(job_of(schedule, 0), 2);
  EXPECT_EQ(job_of(schedule, 0), -1);
  EXPECT_EQ(schedule.by_room(), (std::vector<std::size_t>{1, 0}));
  schedule.done(0, 0);
  EXPECT_EQ(job_of(schedule, 0), 3);
  EXPECT_EQ(job_of(schedule, 1), 4);
  for (const int job : {1, 4}) schedule.done(1, job);
  for (const int job : {2, 3}) schedule.done(0, job);
  EXPECT_TRUE(schedule.is_over());
  EXPECT_EQ(schedule.done_count(), 5U);
  EXPECT_EQ(schedule.retried_count(), 0U);
}

TEST(Schedules, TryAgainOnAnotherHostWhereThereIsOne) {
  Schedule schedule(1, 2, {"a", "a", "b"}, 1);
  EXPECT_EQ(job_of(schedule, 0), 0);
  EXPECT_FALSE(schedule.failed(0, 0));
  EXPECT_EQ(job_of(schedule, 1), -1);
  const auto again = schedule.next(2);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->attempt, 1);
  EXPECT_FALSE(schedule.failed(2, 0));
  EXPECT_EQ(job_of(schedule, 1), 0) << "it has failed everywhere: any will do";
  EXPECT_TRUE(schedule.failed(1, 0));
  EXPECT_TRUE(schedule.is_over());
  EXPECT_EQ(schedule.lost_count(), 1U);
  EXPECT_EQ(schedule.retried_count(), 1U);
}

TEST(Schedules, WithoutRetriesLoseWhatFails) {
  Schedule schedule(2, 0, {"a"}, 2);
  job_of(schedule, 0);
  job_of(schedule, 0);
  EXPECT_TRUE(schedule.failed(0, 0));
  schedule.done(0, 1);
  EXPECT_TRUE(schedule.is_over());
}

TEST(Schedules, BlameNoJobForItsNode) {
  Schedule schedule(2, 0, {"a", "b"}, 1);
  job_of(schedule, 0);
  schedule.returned(0, 0);
  schedule.leave_out(0);
  EXPECT_EQ(job_of(schedule, 0), -1);
  EXPECT_EQ(job_of(schedule, 1), 0);
  schedule.done(1, 0);
  EXPECT_EQ(job_of(schedule, 1), 1);
  schedule.done(1, 1);
  EXPECT_TRUE(schedule.is_over());
  EXPECT_EQ(schedule.done_count(), 2U);
}

TEST(Schedules, GiveUpWhatNobodyCanRun) {
  Schedule schedule(3, 5, {"a"}, 1);
  job_of(schedule, 0);
  schedule.returned(0, 0);
  schedule.leave_out(0);
  EXPECT_FALSE(schedule.has_workers());
  EXPECT_EQ(schedule.give_up(), (std::vector<Given>{{0, 1}, {1, 0}, {2, 0}}));
  EXPECT_TRUE(schedule.is_over());
}

}  // namespace
}  // namespace fabricbench::farm

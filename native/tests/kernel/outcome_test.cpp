#include "kernel/frame/outcome.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace fabricbench::kernel {
namespace {

Result result_with(double found, double tolerance = 1e-8) {
  Result result;
  result.checks = {{"right", 1, 1, 0}, {"in question", found, 2, tolerance}};
  return result;
}

TEST(KernelOutcome, IsVerifiedWhereEveryNumberIsWithinItsTolerance) {
  EXPECT_TRUE(is_verified(result_with(2)));
  EXPECT_TRUE(is_verified(result_with(2 + 1e-8)));
  EXPECT_EQ(after(Exit::verified, result_with(2)), Exit::verified);
}

TEST(KernelOutcome, IsWrongWhereOneNumberIsBeyondItsTolerance) {
  EXPECT_EQ(after(Exit::verified, result_with(2 + 3e-8)), Exit::wrong);
  EXPECT_EQ(after(Exit::verified, result_with(-2)), Exit::wrong);
  EXPECT_EQ(after(Exit::verified, result_with(std::nextafter(2, 3), 0)), Exit::wrong);
}

TEST(KernelOutcome, IsWrongWhereANumberIsNone) {
  EXPECT_EQ(after(Exit::verified, result_with(std::numeric_limits<double>::quiet_NaN())), Exit::wrong);
  EXPECT_EQ(after(Exit::verified, result_with(std::numeric_limits<double>::infinity())), Exit::wrong);
}

TEST(KernelOutcome, IsWrongWhereALimitIsReached) {
  Result result;
  result.checks = {{"residual", 15.9, 16, 0, true}};
  EXPECT_TRUE(is_verified(result));
  for (const double found : {16.0, 1e9, std::numeric_limits<double>::quiet_NaN()}) {
    result.checks[0].found = found;
    EXPECT_FALSE(is_verified(result));
  }
}

TEST(KernelOutcome, IsWrongWhereNothingWasChecked) { EXPECT_EQ(after(Exit::verified, Result{}), Exit::wrong); }

TEST(KernelOutcome, IsNotMadeGoodByLaterRuns) {
  EXPECT_EQ(after(Exit::wrong, result_with(2)), Exit::wrong);
  EXPECT_EQ(after(Exit::environment, result_with(0)), Exit::environment);
}

TEST(KernelOutcome, IsTheExitCodeThatScriptsRelyOn) {
  EXPECT_EQ(static_cast<int>(Exit::verified), 0);
  EXPECT_EQ(static_cast<int>(Exit::wrong), 1);
  EXPECT_EQ(static_cast<int>(Exit::usage), 2);
  EXPECT_EQ(static_cast<int>(Exit::environment), 3);
}

TEST(KernelOutcome, RatesAreMillionsOfOperationsASecond) {
  Result result;
  result.operations = 3e9;
  result.seconds = 2;
  EXPECT_DOUBLE_EQ(mops_total(result), 1500);
}

}  // namespace
}  // namespace fabricbench::kernel

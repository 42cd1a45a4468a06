#include "core/control.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <utility>

namespace fabricbench {
namespace {

TEST(Control, MessagesOfAnyLengthComeAsTheyWereSentInParts) {
  const Control control(8);
  for (const std::size_t length : {0, 1, 7, 8, 9, 16, 17, 1000}) {
    std::string text(length, 'x');
    if (length > 0) text.back() = 'y';
    if (control.rank() == 0) {
      control.send(1, 5, text);
    } else {
      EXPECT_EQ(control.receive(0, 5), text);
    }
  }
}

TEST(Control, WhoWaitsOnAnyTagHearsThatTheLaunchHasEnded) {
  for (const int tag : {0, 1, 777, 32004}) {
    Control control;
    if (control.rank() == 0) {
      control.end_all(3, "the disk is full");
      continue;
    }
    try {
      control.receive(0, tag);
      ADD_FAILURE() << "nothing was sent";
    } catch (const LaunchEnded& ended) {
      EXPECT_EQ(ended.rank(), 0);
      EXPECT_EQ(ended.exit_code(), 3);
      EXPECT_STREQ(ended.what(), "the disk is full");
      control.confirm(ended);
    }
    EXPECT_THROW(control.try_receive(0, tag), LaunchEnded) << "and goes on hearing it";
    control.send(0, tag, std::string(1 << 20, 'x'));  // as destructors do: neither throws nor waits
  }
}

TEST(Control, WhatNobodyTookIsNoFailureOnceTheLaunchHasEnded) {
  Control control;
  if (control.rank() == 0) {
    for (int tag = 7; tag < 9; ++tag) control.send(1, tag, "never taken");
    control.end_all(1, "the cause");
  } else {
    try {
      control.receive(0, 9);
      ADD_FAILURE() << "nothing was sent";
    } catch (const LaunchEnded& ended) {
      control.confirm(ended);
    }
  }
}

TEST(Control, WhoCannotGoOnAfterItHasHeardOfTheEndConfirmsIt) {
  Control control;
  if (control.rank() == 0) {
    control.end_all(1, "the cause");
  } else {
    EXPECT_THROW(control.receive(0, 9), LaunchEnded);
    control.end_all(3, "the disk is full");  // as where the end was heard by a destructor that sends
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

// Run on four ranks, by a test of their own.
TEST(SeveralRanks, TwoThatEndTheLaunchAtOnceAreBothHeard) {
  for (const auto& [one, other] : {std::pair(0, 3), std::pair(2, 1)}) {
    Control control;
    if (control.size() < 4) GTEST_SKIP() << "needs four ranks";
    // Who waits hears of one of them, whichever; the other's message may come at any time.
    if (control.rank() == one) {
      control.end_all(1, "one cause");
    } else if (control.rank() == other) {
      control.end_all(3, "another");
    } else {
      try {
        control.receive_patiently(one, 6);
        ADD_FAILURE() << "nothing was sent";
      } catch (const LaunchEnded& ended) {
        EXPECT_TRUE(ended.rank() == one || ended.rank() == other);
        control.confirm(ended);
      }
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

// Rank 2 hangs, for which 1 waits, for which 0 waits, for which 3 waits, all since the same moment.
TEST(SeveralRanks, OfThoseThatWaitWhoWaitsForTheOneThatHangsSaysSoAndNoOther) {
  Control control;
  if (control.size() < 4) GTEST_SKIP() << "needs four ranks";
  constexpr double patience_seconds = 2;
  control.set_patience(patience_seconds);
  const auto hear = [&](int from) {
    try {
      control.receive(from, 9);
      ADD_FAILURE() << "nothing was sent";
    } catch (const LaunchEnded& ended) {
      EXPECT_EQ(ended.rank(), 1) << ended.what();
      EXPECT_FALSE(ended.failure_here());
      control.confirm(ended);
    }
  };
  MPI_Barrier(MPI_COMM_WORLD);
  if (control.rank() == 2) {
    // Not asleep over the control plane until the others have ended the launch.
    std::this_thread::sleep_for(std::chrono::duration<double>(patience_seconds * 1.3));
    hear(0);
  } else if (control.rank() == 1) {
    try {
      control.receive(2, 9);
      ADD_FAILURE() << "nothing was sent";
    } catch (const ControlError& error) {
      EXPECT_NE(std::string(error.what()).find("rank 1 heard nothing from rank 2"), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("it does not answer"), std::string::npos) << error.what();
      control.end_all(1, error.what());
    }
  } else {
    hear(control.rank() == 0 ? 1 : 0);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

// Rank 0 hangs, for which 1 waits, for which 2 and 3 wait: 1, further up, asks later than they do.
TEST(SeveralRanks, WhoAsksARankBelowItHasTimeToSayThatItHangs) {
  Control control;
  if (control.size() < 4) GTEST_SKIP() << "needs four ranks";
  constexpr double patience_seconds = 3;
  control.set_patience(patience_seconds);
  MPI_Barrier(MPI_COMM_WORLD);
  const int awaited = control.rank() > 1 ? 1 : 0;
  if (control.rank() == 0) std::this_thread::sleep_for(std::chrono::duration<double>(patience_seconds * 1.4));
  try {
    control.receive(control.rank() == 0 ? 1 : awaited, 9);
    ADD_FAILURE() << "nothing was sent";
  } catch (const ControlError& error) {
    EXPECT_EQ(control.rank(), 1) << error.what();
    control.end_all(1, error.what());
  } catch (const LaunchEnded& ended) {
    EXPECT_EQ(ended.rank(), 1) << ended.what();
    control.confirm(ended);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST(SeveralRanks, OneThatIsAskedAndThenGoesOnIsNotGivenUp) {
  Control control;
  if (control.size() < 4) GTEST_SKIP() << "needs four ranks";
  constexpr double patience_seconds = 4;
  MPI_Barrier(MPI_COMM_WORLD);
  if (control.rank() == 0) {
    control.set_patience(patience_seconds);
    EXPECT_EQ(control.receive(1, 9), "late");
  } else if (control.rank() == 1) {
    EXPECT_EQ(control.receive(2, 9), "later");  // and answers meanwhile
    control.send(0, 9, "late");
  } else if (control.rank() == 2) {
    std::this_thread::sleep_for(std::chrono::duration<double>(patience_seconds * 1.15));
    control.send(1, 9, "later");
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST(Control, ARankThatSaysNothingForLongerThanThePatienceIsNamed) {
  Control control;
  control.set_patience(0.05);
  if (control.rank() == 1) {
    try {
      control.receive(0, 9);
      ADD_FAILURE() << "nothing was sent";
    } catch (const ControlError& error) {
      EXPECT_NE(std::string(error.what()).find("rank 1 heard nothing from rank 0"), std::string::npos) << error.what();
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

}  // namespace
}  // namespace fabricbench

#include "core/control.hpp"

#include <gtest/gtest.h>

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

TEST(Control, AMessageOfAnotherSizeIsRefusedBeforeItIsCopied) {
  EXPECT_EQ(decode<int>(encode(42)), 42);
  EXPECT_THROW(decode<int>("123"), ControlError);
  EXPECT_THROW(decode<int>("12345"), ControlError);
  const Control control;
  const CellTeam team(control, {0, 1}, 0);
  if (team.member() == 0) {
    team.send(1, std::int16_t{1});
  } else {
    EXPECT_THROW(team.receive<std::int64_t>(0), ControlError);
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

#include "core/channel.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <numeric>

#include "core/report.hpp"
#include "pattern/channels.hpp"
#include "pattern/round_trip.hpp"
#include "probe/agreement.hpp"
#include "probe/launch.hpp"

namespace fabricbench {
namespace {

/// What keeps a rank from reading what came; nothing where nothing does.
std::string problem_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const ControlError& error) {
    return error.what();
  }
  return {};
}

TEST(Channel, AReportInManyPartsComesAsItWasSent) {
  const Control control(8);
  const Channel channel(control);
  CellReport report;
  report.measured.time_ns.resize(1000);
  std::iota(report.measured.time_ns.begin(), report.measured.time_ns.end(), 0);
  if (channel.rank() == 1) return channel.send(0, CellMerge(Family::pair, report));
  EXPECT_EQ(channel.receive<CellMerge>(1).finish().measured.time_ns, report.measured.time_ns);
}

TEST(Channel, AnotherMessageThanTheOneAwaitedNamesBothAndTheirRanks) {
  const Control control;
  const Channel channel(control);
  if (channel.rank() == 1) {
    channel.send(0, CellParts{});
    return channel.send(0, Measure{});
  }
  EXPECT_TRUE(problem_of([&] {
                channel.receive<CellMerge>(1);
              }).starts_with(R"(rank 0 awaited "report" from rank 1, which sent "parts" ()"));
  EXPECT_TRUE(problem_of([&] {
                channel.receive_patiently<Begun, CellMerge>(1);
              }).starts_with(R"(rank 0 awaited "congestor has begun" or "report" from rank 1, which sent "order to)"));
}

TEST(Channel, OfSeveralThatMayComeItSaysWhichCame) {
  const Control control;
  const Channel channel(control);
  if (channel.rank() == 0) {
    channel.send(1, Measure{.probe = 3});
    return channel.send(1, Finish{});
  }
  const auto first = channel.receive_patiently<Measure, Congest, CheckClocks, Finish>(0);
  ASSERT_TRUE(std::holds_alternative<Measure>(first));
  EXPECT_EQ(std::get<Measure>(first).probe, 3);
  EXPECT_TRUE((std::holds_alternative<Finish>(channel.receive_patiently<Measure, Congest, CheckClocks, Finish>(0))));
}

TEST(Channel, BytesThatAreNoMessageAreRefusedWithTheRankTheyAreFrom) {
  const Control control;
  const Channel channel(control);
  const std::vector<std::string> damaged{"abc", encode(Measure{}).substr(0, 19), std::string(40, '\xff'),
                                         seal(MessageType::measure, "no order"), seal(MessageType::report, "\xbf")};
  if (channel.rank() == 1) {
    for (const std::string& bytes : damaged) control.send(0, launch_tag, bytes);
    return;
  }
  for (std::size_t i = 0; i < damaged.size(); ++i) {
    const std::string problem = problem_of([&] { channel.receive<Measure, CellMerge>(1); });
    EXPECT_TRUE(problem.starts_with("rank 0 cannot read what rank 1 sent: ")) << problem;
  }
}

TEST(Channel, NothingComesWhereNothingWasSent) {
  const Control control;
  const Channel channel(control);
  if (channel.rank() == 0) {
    MPI_Barrier(MPI_COMM_WORLD);
    return channel.send(1, Stop{});
  }
  EXPECT_FALSE(channel.try_receive<Stop>(0));
  MPI_Barrier(MPI_COMM_WORLD);
  while (!channel.try_receive<Stop>(0)) {
  }
}

TEST(SeveralRanks, AllHearTheFirstAndTheFirstHearsAll) {
  const Control control;
  const Channel channel(control);
  EXPECT_EQ(channel.broadcast(Measure{.probe = 10 + channel.rank()}).probe, 10);
  const std::vector<Measure> all = channel.gather(Measure{.probe = 20 + channel.rank()});
  ASSERT_EQ(all.size(), channel.rank() == 0 ? static_cast<std::size_t>(channel.size()) : 0U);
  for (std::size_t rank = 0; rank < all.size(); ++rank) EXPECT_EQ(all[rank].probe, 20 + static_cast<int>(rank));
}

TEST(SeveralRanks, ATeamJoinsWhatItsMembersSayInAnyOrderOfRanks) {
  const Control control;
  std::vector<int> ranks(static_cast<std::size_t>(control.size()));
  std::iota(ranks.rbegin(), ranks.rend(), 0);
  const CellTeam team(control, ranks, 0);
  const auto add = [](Measure one, Measure other) { return Measure{.probe = one.probe + other.probe}; };
  EXPECT_EQ(team.converge<Measure>({.probe = 1 + control.rank()}, add).probe,
            control.size() * (control.size() + 1) / 2);
  EXPECT_EQ(team.broadcast(Measure{.probe = control.rank()}).probe, control.size() - 1) << "the first member's";
  EXPECT_TRUE(team.has_any(control.rank() == 1));
  EXPECT_FALSE(team.has_any(false));
}

TEST(Channel, WhatAPatternLeftIsNeitherTakenForAnAgreementNorKept) {
  const Control control;
  const CellTeam team(control, {0, 1}, 5);
  if (team.member() == 0) {
    team.send(1, RoundOrder{.first = 1, .count = 2});
    team.send(1, Whether{.holds = true});
  }
  EXPECT_TRUE(team.has_any(team.member() == 0));
  team.discard_leftovers();
  if (team.member() == 1) {
    EXPECT_FALSE(team.try_receive<RoundOrder>(0));
  }
  const CellTeam next(control, {0, 1}, 6);
  if (next.member() == 0) return next.send(1, RoundOrder{.first = 3, .count = 4});
  EXPECT_EQ(next.receive<RoundOrder>(0).first, 3U);
}

TEST(Channel, WhoWaitsForAnyMessageHearsThatTheLaunchHasEnded) {
  using Wait = std::function<void(const Channel&, const CellTeam&)>;
  const std::vector<Wait> waits{
      [](const Channel& channel, const CellTeam&) { channel.receive<CellMerge>(0); },
      [](const Channel& channel, const CellTeam&) { channel.receive_patiently<Measure, Finish>(0); },
      [](const Channel& channel, const CellTeam&) {
        while (!channel.try_receive<Stop>(0)) {
        }
      },
      [](const Channel& channel, const CellTeam&) { channel.broadcast(Beginning{}); },
      [](const Channel&, const CellTeam& team) { team.has_any(true); },
      [](const Channel&, const CellTeam& team) { team.broadcast(CommonStart{}); },
      [](const Channel&, const CellTeam& team) { team.hear<Address>(0); },
      [](const Channel&, const CellTeam& team) { team.hear_patiently<Turn, TurnsOver>(0); },
      [](const Channel&, const CellTeam& team) { team.receive<RoundOrder>(0); },
      [](const Channel&, const CellTeam& team) {
        while (!team.try_receive<RoundOrder>(0)) {
        }
      },
      [](const Channel&, const CellTeam& team) {
        for (;;) team.discard_leftovers();
      },
  };
  for (const Wait& wait : waits) {
    Control control;
    if (control.rank() == 0) {
      control.end_all(3, "the disk is full");
      continue;
    }
    try {
      wait(Channel(control), CellTeam(control, {0, 1}, 0));
      ADD_FAILURE() << "nothing was sent";
    } catch (const LaunchEnded& ended) {
      EXPECT_STREQ(ended.what(), "the disk is full");
      control.confirm(ended);
    }
  }
}

TEST(Channel, GatheringOnTheFirstRankHearsOfTheEndToo) {
  Control control;
  const Channel channel(control);
  if (channel.rank() == 1) return control.end_all(1, "the cause");
  try {
    channel.gather(Measure{});
    ADD_FAILURE() << "nothing was sent";
  } catch (const LaunchEnded& ended) {
    EXPECT_EQ(ended.rank(), 1);
    control.confirm(ended);
  }
}

TEST(Channel, WhatIsSaidOfTheEndAndCannotBeReadEndsTheLaunchToo) {
  for (const std::string& bytes : {std::string("abc"), encode(Measure{}), seal(MessageType::end, "x")}) {
    Control control;
    if (control.rank() == 1) {
      control.send(0, end_tag, bytes);
    } else {
      try {
        control.receive(1, launch_tag);
        ADD_FAILURE() << "nothing was sent";
      } catch (const LaunchEnded& ended) {
        EXPECT_EQ(ended.exit_code(), 1);
        EXPECT_NE(std::string(ended.what()), "");
      }
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

}  // namespace
}  // namespace fabricbench

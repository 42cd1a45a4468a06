// Who stops in the middle of posted messages: buffers live as long as MPI owns them, and nobody waits.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>

#include "core/set_aside.hpp"
#include "pattern/flood_posted.hpp"
#include "pattern/flow.hpp"
#include "task_of_team.hpp"
#include "transport/mpi.hpp"

namespace fabricbench {
namespace {

constexpr std::size_t large = std::size_t{64} << 20U;

int own_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

MpiPath path_to_the_other(std::uint32_t generation = 0) {
  return {Attachment{.interface = {}, .communicator = MPI_COMM_WORLD},
          Site{.peer_rank = 1 - own_rank(), .generation = generation}};
}

PlanProbe probe_of(std::size_t message_bytes) {
  PlanProbe probe;
  probe.message_bytes = message_bytes;
  return probe;
}

TEST(Posting, ASendThatIsGivenUpKeepsItsBufferAndIsNotWaitedFor) {
  MpiPath path = path_to_the_other();
  if (own_rank() == 0) {
    {
      Outgoing<MpiPath> out(path, probe_of(large), plain_memory);
      std::ranges::fill(out.usual().span(), std::byte{0x5a});
      out.send_usual();
    }
    EXPECT_TRUE(has_set_aside());
    MPI_Barrier(MPI_COMM_WORLD);
    while (has_set_aside()) usleep(1000);
  } else {
    MPI_Barrier(MPI_COMM_WORLD);
    MessageBuffer came(large);
    path.receive(came.span());
    EXPECT_TRUE(std::ranges::all_of(came.span(), [](std::byte byte) { return byte == std::byte{0x5a}; }));
  }
}

TEST(Posting, ReceivesThatAreGivenUpTakeNothingThatComesLater) {
  MpiPath path = path_to_the_other();
  std::byte sent{7};
  if (own_rank() == 1) {
    path.post_receive(0, std::span(&sent, 1));
    path.release_receive(0, nullptr);
    EXPECT_FALSE(has_set_aside());
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (own_rank() == 0) {
    path.send(std::span(&sent, 1));
  } else {
    Incoming<MpiPath> in(path, probe_of(1), plain_memory);
    EXPECT_EQ(in.receive()[0], std::byte{7});
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST(Posting, APathThatIsOpenedAnewDoesNotTakeWhatItsForerunnerLeft) {
  std::byte byte{1};
  if (own_rank() == 0) {
    path_to_the_other(0).send(std::span(&byte, 1));
    byte = std::byte{2};
    path_to_the_other(1).send(std::span(&byte, 1));
  } else {
    path_to_the_other(1).receive(std::span(&byte, 1));
    EXPECT_EQ(byte, std::byte{2});
    path_to_the_other(0).receive(std::span(&byte, 1));
  }
}

TEST(Posting, NoMoreTalliesAreAwaitedOnceOnePeerHasFailed) {
  TaskOfTeam two;
  MpiPath path = path_to_the_other(2);
  if (own_rank() == 0) {
    // The second never comes: it would be this rank's own.
    std::array links{LinkOver<MpiPath>{.link = {.peer = 1, .receives = true}, .path = &path},
                     LinkOver<MpiPath>{.link = {.peer = 0, .receives = true}, .path = &path}};
    const FloodTallies<MpiPath> tallies(links, two.team);
    EXPECT_THROW(static_cast<void>(tallies.receive_all()), Failure);
  } else {
    two.team.send(0, FloodTally{});
  }
  MPI_Barrier(MPI_COMM_WORLD);
  two.team.discard_leftovers();
}

TEST(Posting, WhatDoesNotComeAtTheEndOfAFloodIsGivenUpWithinItsBound) {
  TaskOfTeam two;
  two.probe.pattern = Pattern::incast;
  two.probe.message_bytes = 64;
  two.probe.warmup_samples = 0;
  two.probe.stopping.maximum_seconds = 0.01;
  two.task.patience_seconds = 1;
  MpiPath path = path_to_the_other(3);
  const bool sends = own_rank() == 0;
  std::array links{
      LinkOver<MpiPath>{.link = {.peer = sends ? 1U : 0U, .sends = sends, .receives = !sends}, .path = &path}};
  two.samples.prepare(0, 8, true);
  if (sends) {
    two.team.send(1, FloodTally{.has_failed = false, .bytes = 192, .messages = 3});  // which it never sends
  } else {
    const std::uint64_t begin = Clock::now();
    EXPECT_THROW(PostedFlood<MpiPath>(links, two.task).run(), Failure);
    const double seconds = static_cast<double>(Clock::now() - begin) * 1e-9;
    EXPECT_GE(seconds, 0.5);
    EXPECT_LT(seconds, 5);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  two.team.discard_leftovers();
}

TEST(Posting, AFloodThatOnlySendsIsGivenUpWhenItsReceiverHasFailed) {
  TaskOfTeam two;
  two.probe.pattern = Pattern::incast;
  two.probe.message_bytes = large / 4;  // of which two are under way at once
  two.probe.warmup_samples = 0;
  two.probe.stopping.maximum_seconds = 0.01;
  MpiPath path = path_to_the_other(2);
  const bool sends = own_rank() == 0;
  std::array links{
      LinkOver<MpiPath>{.link = {.peer = sends ? 1U : 0U, .sends = sends, .receives = !sends}, .path = &path}};
  if (sends) {
    EXPECT_THROW(PostedFlood<MpiPath>(links, two.task).run(), Failure);
    MPI_Barrier(MPI_COMM_WORLD);
    while (has_set_aside()) usleep(1000);
  } else {
    {
      const FloodTallies<MpiPath> failing(links, two.team);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MessageBuffer came(two.probe.message_bytes);
    for (int messages = 0; messages < 2; ++messages) path.receive(came.span());
  }
  MPI_Barrier(MPI_COMM_WORLD);
  two.team.discard_leftovers();
}

}  // namespace
}  // namespace fabricbench

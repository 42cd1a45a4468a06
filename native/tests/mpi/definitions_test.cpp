// What a pattern does when it is told to measure as another benchmark defines it: from and into which memory messages
// go, how many between two stamps, what is answered and what lies unmatched meanwhile.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "pattern/pingpong.hpp"
#include "pattern/stream.hpp"
#include "task_of_team.hpp"
#include "transport/mpi.hpp"

namespace fabricbench {
namespace {

/// Where the messages of a size came to and went from, and how many.
struct Trace {
  std::set<const void*> received_into;
  std::set<const void*> sent_from;
  std::size_t received = 0;
  std::size_t sent = 0;
};

constexpr std::size_t size_of_all = 64;

/// MPI's messages one after the other, with a trace of those of the test's size.
class TracedPath {
 public:
  static constexpr Traits traits = MpiPath::traits;

  explicit TracedPath(std::size_t peer)
      : path_(Attachment{.interface = {}, .communicator = MPI_COMM_WORLD},
              Site{.peer_rank = static_cast<int>(peer), .generation = 7}) {}
  std::size_t largest_message() const { return path_.largest_message(); }
  std::string address() const { return {}; }
  void meet(std::string_view) {}
  void set_bound(double) {}
  void send(std::span<const std::byte> message) {
    note_sent(message);
    path_.send(message);
  }
  bool receive(std::span<std::byte> message) {
    note_received(message);
    return path_.receive(message);
  }
  const Trace& trace() const { return trace_; }

 protected:
  void note_sent(std::span<const std::byte> message) {
    if (message.size() != size_of_all) return;
    ++trace_.sent;
    trace_.sent_from.insert(message.data());
  }
  void note_received(std::span<const std::byte> message) {
    if (message.size() != size_of_all) return;
    ++trace_.received;
    trace_.received_into.insert(message.data());
  }
  MpiPath path_;
  Trace trace_;
};
static_assert(Transport<TracedPath> && !PostingTransport<TracedPath> && !PrepostingTransport<TracedPath>);

/// The same with the next receive ready before what it answers is sent.
class PrepostingPath : public TracedPath {
 public:
  using TracedPath::TracedPath;
  void prepost(std::span<std::byte> message) {
    if (!posted_.empty()) return;
    posted_ = message;
    note_received(message);
    path_.post_receive(0, message);
  }
  bool receive_preposted() {
    path_.wait(0);
    posted_ = {};
    return true;
  }
  void release_preposted(std::shared_ptr<const void> memory) { path_.release_receive(0, std::move(memory)); }

 private:
  std::span<std::byte> posted_;
};
static_assert(PrepostingTransport<PrepostingPath>);

/// The same with messages in slots.
class PostingPath : public TracedPath {
 public:
  static constexpr std::size_t slots = 3;
  using TracedPath::TracedPath;
  void post_send(std::size_t slot, std::span<const std::byte> message) {
    note_sent(message);
    path_.post_send(slot, message);
  }
  void post_receive(std::size_t slot, std::span<std::byte> message) {
    note_received(message);
    path_.post_receive(slot, message);
  }
  void wait(std::size_t slot) { path_.wait(slot); }
  void release_send(std::size_t slot, std::shared_ptr<const void> memory) {
    path_.release_send(slot, std::move(memory));
  }
  void release_receive(std::size_t slot, std::shared_ptr<const void> memory) {
    path_.release_receive(slot, std::move(memory));
  }
};
static_assert(PostingTransport<PostingPath>);

class Definitions : public testing::Test, protected TaskOfTeam {
 protected:
  Definitions() {
    probe.message_bytes = size_of_all;
    probe.warmup_samples = 0;
    probe.stopping = {.minimum_samples = 4, .maximum_samples = 4, .maximum_seconds = 20};
    samples.prepare(0, 4, true);
  }
  void TearDown() override {
    MPI_Barrier(MPI_COMM_WORLD);
    team.discard_leftovers();
  }
  std::size_t peer() const { return 1 - team.member(); }
  bool is_first() const { return team.member() == 0; }

  template <class Path>
  Outcome ping_pong(Path& path) {
    probe.pattern = Pattern::pingpong;
    return Pingpong::Over<Path>(path, task).run();
  }
  template <class Path>
  Outcome stream(Path& path) {
    probe.pattern = Pattern::stream;
    return Stream::Over<Path>(path, task).run();
  }
};

template <class Path>
class RoundTripsOver : public Definitions {};
using PathsOfRoundTrips = testing::Types<TracedPath, PrepostingPath>;
TYPED_TEST_SUITE(RoundTripsOver, PathsOfRoundTrips);

TYPED_TEST(RoundTripsOver, AnEchoLeavesFromWhereTheMessageCameTo) {
  TypeParam path(this->peer());
  this->ping_pong(path);
  if (this->is_first()) return;
  EXPECT_TRUE(std::ranges::includes(path.trace().received_into, path.trace().sent_from));
}

TYPED_TEST(RoundTripsOver, AnAnswerOfItsOwnLeavesFromABufferThatNothingIsReceivedInto) {
  this->probe.parameters["answer"] = "own";
  TypeParam path(this->peer());
  this->ping_pong(path);
  const Trace& trace = path.trace();
  EXPECT_EQ(trace.received_into.size(), 1U);
  EXPECT_EQ(trace.sent_from.size(), 1U);
  EXPECT_NE(*trace.received_into.begin(), *trace.sent_from.begin());
}

TYPED_TEST(RoundTripsOver, SoManyRoundTripsInARowAreOneSample) {
  this->probe.parameters["round_trips"] = 5;
  TypeParam path(this->peer());
  const Outcome outcome = this->ping_pong(path);
  // Each order, one of a single sample before the others, has an untimed sample first.
  EXPECT_EQ(path.trace().sent % 5, 0U);
  EXPECT_GE(path.trace().sent, 6 * 5U);
  EXPECT_EQ(path.trace().sent, path.trace().received);
  EXPECT_EQ(outcome.operations_per_sample, 5U);
  EXPECT_EQ(outcome.bytes_per_sample, 2 * 5 * size_of_all);
  EXPECT_EQ(this->counters.sent, this->is_first() ? 4 * 5U : 0U);
}

template <class Path>
class AnsweredWindows : public Definitions {};
using PathsOfWindows = testing::Types<TracedPath, PrepostingPath, PostingPath>;
TYPED_TEST_SUITE(AnsweredWindows, PathsOfWindows);

TYPED_TEST(AnsweredWindows, AllComeIntoOneBuffer) {
  constexpr std::size_t window = 7;  // more than there are slots
  this->probe.parameters["window"] = std::int64_t{window};
  this->probe.messages_per_sample = window;
  TypeParam path(this->peer());
  const Outcome outcome = this->stream(path);
  EXPECT_EQ(outcome.bytes_per_sample, window * size_of_all);
  const Trace& trace = path.trace();
  if (this->is_first()) {
    EXPECT_EQ(trace.sent_from.size(), 1U);
    EXPECT_EQ(trace.sent % window, 0U);
    EXPECT_EQ(trace.received, 0U);
    return;
  }
  EXPECT_EQ(trace.received_into.size(), 1U);
  EXPECT_GE(trace.received, 5 * window) << "the first begins the clock";
  EXPECT_EQ(this->samples.measured.size(), 4U);
  EXPECT_EQ(this->counters.sent, 4 * window);
  EXPECT_TRUE(outcome.stop.has_value());
}

TYPED_TEST(AnsweredWindows, AreRefusedWhereASampleIsNone) {
  this->probe.parameters["window"] = 8;
  this->probe.messages_per_sample = 4;
  TypeParam path(this->peer());
  EXPECT_THROW(this->stream(path), Failure);
}

TEST_F(Definitions, WhatLiesUnmatchedIsThereDuringTheRoundTripsAndGoneAfterThem) {
  constexpr std::int64_t left = 50;
  probe.parameters["unexpected"] = left;
  MpiPath path(Attachment{.interface = {}, .communicator = MPI_COMM_WORLD},
               Site{.peer_rank = static_cast<int>(peer()), .generation = 8});
  ping_pong(path);
  int is_there = 1;
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Iprobe(static_cast<int>(peer()), 32767, MPI_COMM_WORLD, &is_there, MPI_STATUS_IGNORE);
  EXPECT_EQ(is_there, 0);
  MPI_Barrier(MPI_COMM_WORLD);  // the other may not send the next before this one has looked

  path.leave_unmatched(left);
  MPI_Iprobe(static_cast<int>(peer()), 32767, MPI_COMM_WORLD, &is_there, MPI_STATUS_IGNORE);
  EXPECT_EQ(is_there, 1);
  path.take_unmatched(left - 1);
  MPI_Iprobe(static_cast<int>(peer()), 32767, MPI_COMM_WORLD, &is_there, MPI_STATUS_IGNORE);
  EXPECT_EQ(is_there, 1) << "one is left";
  path.take_unmatched(1);
}

}  // namespace
}  // namespace fabricbench

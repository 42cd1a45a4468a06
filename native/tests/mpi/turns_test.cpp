// A turn over paths that are polled: where they wait, and for what; one over paths that lose messages: what is lost.
#include "pattern/turns.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>

#include "task_of_team.hpp"

namespace fabricbench {
namespace {

/// A pipe, of which one path has the end that is written and another the end that is read, so that receiving and
/// sending are told by descriptors of their own. `full` attempts to send find the queue of the interface full.
class PipePath {
 public:
  static constexpr Traits traits{
      .is_reliable = true, .is_ordered = true, .framing = Framing::stream, .smallest_message = 1};

  PipePath(int in, int out, int full = 0) : in_(in), out_(out), full_(full) {}
  std::size_t largest_message() const { return std::size_t{1} << 30U; }
  std::string address() const { return {}; }
  void meet(std::string_view) {}
  void set_bound(double) {}
  void send(std::span<const std::byte>) {}
  bool receive(std::span<std::byte> message) {
    for (std::size_t done = 0; done < message.size();) done += try_receive(message.subspan(done));
    return true;
  }
  std::size_t try_send(std::span<const std::byte> message) {
    is_full_ = full_ > 0 && full_-- > 0;
    const ssize_t size = is_full_ ? -1 : ::write(out_, message.data(), message.size());
    return size > 0 ? static_cast<std::size_t>(size) : 0;
  }
  std::size_t try_receive(std::span<std::byte> message) {
    const ssize_t size = ::read(in_, message.data(), message.size());
    return size > 0 ? static_cast<std::size_t>(size) : 0;
  }
  int descriptor() const { return in_; }
  int sending_descriptor() const { return out_; }
  bool has_full_interface() const { return is_full_; }

 private:
  int in_;
  int out_;
  int full_;
  bool is_full_ = false;
};
static_assert(PolledTransport<PipePath>);

class TurnOverPipes : public testing::Test, protected TaskOfTeam {
 protected:
  void SetUp() override { ASSERT_EQ(pipe2(ends_, O_NONBLOCK | O_CLOEXEC), 0); }
  void TearDown() override {
    for (const int end : ends_) close(end);
  }

  /// Take a turn in which this rank sends itself a message; whether it came as it was sent.
  bool is_taken(std::size_t message_bytes, int full) {
    probe.message_bytes = message_bytes;
    PipePath out(-1, ends_[1], full);
    PipePath in(ends_[0], -1);
    const std::size_t own = team.member();
    std::array links{LinkOver<PipePath>{.link = {.peer = own, .flow = 0, .sends = true}, .path = &out},
                     LinkOver<PipePath>{.link = {.peer = own, .flow = 0, .receives = true}, .path = &in}};
    Turns<PipePath> turns(links, task);
    turns.buffers().fill(3);
    turns.take();
    return std::ranges::equal(turns.buffers().in(1), turns.buffers().out(0));
  }

  int ends_[2] = {-1, -1};
};

TEST_F(TurnOverPipes, WaitsForRoomWhereThePathSendsAndForMessagesWhereItReceives) {
  EXPECT_TRUE(is_taken(std::size_t{1} << 20U, 0)) << "far more than a pipe holds";
}

TEST_F(TurnOverPipes, LooksAgainWhereTheInterfaceIsFullWhichGivesNoNotice) { EXPECT_TRUE(is_taken(100, 5)); }

/// What arrives is a list of the numbers of turns, in this order; `nothing` lets one wait run out.
class ListedPath {
 public:
  static constexpr Traits traits = datagram_traits;
  static constexpr std::uint32_t nothing = 0xffffffff;

  ListedPath(std::uint32_t token, std::uint32_t base, std::vector<std::uint32_t> turns)
      : token_(token), base_(base), turns_(std::move(turns)) {}
  std::size_t largest_message() const { return 1024; }
  std::string address() const { return {}; }
  void meet(std::string_view) {}
  void set_bound(double) {}
  void send(std::span<const std::byte>) {}
  bool receive(std::span<std::byte> message) {
    if (next_ == turns_.size() || turns_[next_++] == nothing) return false;
    write_header(message, {token_, base_ + turns_[next_ - 1]});
    return true;
  }

 private:
  std::uint32_t token_;
  std::uint32_t base_;
  std::vector<std::uint32_t> turns_;
  std::size_t next_ = 0;
};
static_assert(Transport<ListedPath> && !PolledTransport<ListedPath>);

class LossyTurns : public testing::Test, protected TaskOfTeam {
 protected:
  /// Which of so many turns are complete, a letter each: `c`, or `l` where the message is lost.
  std::string take(std::size_t count, std::vector<std::uint32_t> arriving) {
    constexpr std::uint32_t token = 7;
    probe.message_bytes = 64;
    ListedPath path(token, sequence, std::move(arriving));
    const std::size_t own = team.member();
    std::array links{LinkOver<ListedPath>{
        .link = {.peer = own, .flow = 0, .receives = true}, .path = &path, .token = token, .sequence = &sequence}};
    Turns<ListedPath> turns(links, task);
    std::string outcome;
    for (std::size_t i = 0; i < count; ++i) {
      const bool is_complete = turns.take();
      EXPECT_EQ(is_complete, turns.has_come(0)) << "turn " << i;
      outcome += is_complete ? 'c' : 'l';
    }
    counters = turns.counters();
    return outcome;
  }
};

TEST_F(LossyTurns, AreLostWhereTheirMessagesAreUpToTheNextThatComes) {
  EXPECT_EQ(take(6, {0, 4, 5}), "clllcc");
  EXPECT_EQ(counters.lost, 3U);
}

TEST_F(LossyTurns, WaitOnceForABurstOfLossesWhoseEndHasCome) {
  std::vector<std::uint32_t> arriving{30};
  for (std::uint32_t turn = 31; turn < 40; ++turn) arriving.push_back(turn);
  EXPECT_EQ(take(40, arriving), std::string(30, 'l') + std::string(10, 'c'));
  EXPECT_EQ(counters.lost, 30U);
}

TEST_F(LossyTurns, AreGivenUpWhereTwentyInARowWaitInVain) {
  std::vector<std::uint32_t> arriving(19, ListedPath::nothing);
  arriving.push_back(19);
  EXPECT_EQ(take(20, arriving), std::string(19, 'l') + "c");
  EXPECT_THROW(take(20, std::vector(20, ListedPath::nothing)), Failure);
}

TEST_F(LossyTurns, CountAMessageThatIsOvertakenAsReordered) {
  EXPECT_EQ(take(4, {1, 0, 2, 3}), "lccc");
  EXPECT_EQ(counters.lost, 1U);
  EXPECT_EQ(counters.reordered, 1U);
}

}  // namespace
}  // namespace fabricbench

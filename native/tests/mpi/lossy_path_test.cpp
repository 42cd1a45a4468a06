// Patterns over a path that loses and doubles the messages that a test names.
#include <gtest/gtest.h>

#include <functional>
#include <initializer_list>
#include <numeric>

#include "examples/extending/lossy_door.hpp"
#include "pattern/burst.hpp"
#include "pattern/oneway.hpp"
#include "pattern/pingpong.hpp"
#include "pattern/round_trip.hpp"
#include "task_of_team.hpp"
#include "transport/device.hpp"

namespace fabricbench {
namespace {

class LossyPath {
 public:
  static constexpr Traits traits = datagram_traits;

  /// `copies_of` tells how many of the n-th message that is sent here arrive: 0, 1 or 2.
  LossyPath(std::size_t peer, std::function<int(int)> copies_of)
      : peer_(static_cast<int>(peer)), copies_of_(std::move(copies_of)) {}
  std::size_t largest_message() const { return 1024; }
  std::string address() const { return {}; }
  void meet(std::string_view) {}
  void set_bound(double seconds) { bound_ns_ = static_cast<std::uint64_t>(std::max(seconds, least_bound_) * 1e9); }
  /// Let every receive wait for so long, so that what else has come is not seen before a message is.
  void sit_in_receive(double seconds) { least_bound_ = seconds; }
  int sent() const { return sent_; }

  void send(std::span<const std::byte> message) {
    for (int copies = copies_of_(sent_++); copies > 0; --copies) {
      MPI_Send(message.data(), static_cast<int>(message.size()), MPI_BYTE, peer_, tag, MPI_COMM_WORLD);
    }
  }
  bool receive(std::span<std::byte> message) {
    for (const std::uint64_t begin = Clock::now(); Clock::now() - begin < bound_ns_;) {
      int has_come = 0;
      MPI_Iprobe(peer_, tag, MPI_COMM_WORLD, &has_come, MPI_STATUS_IGNORE);
      if (has_come == 0) continue;
      MPI_Recv(message.data(), static_cast<int>(message.size()), MPI_BYTE, peer_, tag, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
      return true;
    }
    return false;
  }
  /// Let go of what a test left on the way.
  void drain() {
    std::vector<std::byte> scrap(largest_message());
    set_bound(0.01);
    while (receive(scrap)) {
    }
  }

 private:
  static constexpr int tag = 99;
  int peer_;
  std::function<int(int)> copies_of_;
  int sent_ = 0;
  std::uint64_t bound_ns_ = 0;
  double least_bound_ = 0;
};
static_assert(Transport<LossyPath>);

/// The same with the next receive posted ahead.
class PrepostingLossyPath : public LossyPath {
 public:
  using LossyPath::LossyPath;
  void prepost(std::span<std::byte> message) {
    if (posted_.empty()) ++preposted_;
    posted_ = message;
  }
  bool receive_preposted() {
    if (!receive(posted_)) return false;
    posted_ = {};
    return true;
  }
  void release_preposted(std::shared_ptr<const void> memory) { is_kept_ = !posted_.empty() && memory != nullptr; }
  int preposted() const { return preposted_; }
  bool is_kept() const { return is_kept_; }

 private:
  std::span<std::byte> posted_;
  int preposted_ = 0;
  bool is_kept_ = false;
};
static_assert(PrepostingTransport<PrepostingLossyPath> && !PrepostingTransport<LossyPath>);

/// Both ends of a path, the leader's losses on rank 0 and the follower's on rank 1.
class LossyPair : public testing::Test, protected TaskOfTeam {
 protected:
  bool is_leader() const { return team.member() == leader; }
  LossyPath path(const std::function<int(int)>& forth, const std::function<int(int)>& back) const {
    return LossyPath(1 - team.member(), is_leader() ? forth : back);
  }
  void TearDown() override {
    MPI_Barrier(MPI_COMM_WORLD);
    path(all, all).drain();
    MPI_Barrier(MPI_COMM_WORLD);
  }
  static int all(int) { return 1; }
  static int none(int) { return 0; }

  /// Of a cell that is to come to its third message, however slow the machine is.
  static constexpr double time_for_several = 5;

  /// Take part in a short cell; whether it failed here.
  template <class Pattern>
  bool fails(LossyPath& lossy, double maximum_seconds = 0.05) {
    probe.warmup_samples = 0;
    probe.stopping = {.minimum_samples = 5, .maximum_samples = 5, .maximum_seconds = maximum_seconds};
    samples.prepare(0, 5, false);
    try {
      typename Pattern::template Over<LossyPath>(lossy, task).run();
    } catch (const Failure&) {
      return true;
    }
    return false;
  }
  /// As a leader does: an order of so many rounds each, with the untimed one before them, and the follower let go.
  template <class Rounds>
  void lead_orders(Rounds& rounds, std::initializer_list<std::size_t> counts) {
    samples.prepare(0, std::accumulate(counts.begin(), counts.end(), std::size_t{0}), false);
    for (const std::size_t count : counts) {
      team.send(follower, rounds.order(count + 1));
      rounds.lead(count, samples.measured, Clock::now() + 1'000'000'000);
    }
    team.send(follower, RoundOrder{});
  }
  /// Who failed, as the ranks of a cell agree on it afterwards.
  std::string who_failed(bool own) const {
    std::string all_names = team.has_any(own && is_leader()) ? "leader" : "";
    if (team.has_any(own && !is_leader())) all_names += "follower";
    team.discard_leftovers();
    return all_names;
  }

  LossyPair() {
    probe.pattern = Pattern::pingpong;
    probe.message_bytes = 64;
    probe.verify_messages = 4;
    probe.reply_timeout_seconds = 0.1;
  }
};

TEST_F(LossyPair, ALostFirstMessageIsSentAgain) {
  LossyPath lossy = path([](int number) { return number == 0 ? 0 : 1; }, all);
  Verification<LossyPath>(lossy, task).run();
  EXPECT_EQ(counters.verified, is_leader() ? 4U : 0U);
  EXPECT_EQ(counters.corrupted, 0U);
}

TEST_F(LossyPair, LostAnswersAndDoublesBeforeTheFirstThatComesAreNothingWrong) {
  LossyPath lossy = path([](int number) { return number == 0 ? 2 : 1; }, [](int number) { return number < 3 ? 0 : 2; });
  Verification<LossyPath>(lossy, task).run();
  EXPECT_EQ(counters.verified, is_leader() ? 4U : 0U);
  EXPECT_EQ(counters.corrupted, 0U);
}

TEST_F(LossyPair, OneMessageIsVerifiedThoughItsFirstAnswerIsLost) {
  probe.verify_messages = 1;
  LossyPath lossy = path(all, [](int number) { return number == 0 ? 0 : 1; });
  Verification<LossyPath>(lossy, task).run();
  EXPECT_EQ(counters.verified, is_leader() ? 1U : 0U);
}

TEST_F(LossyPair, APeerThatNeverAnswersIsGivenUpAfterAFewTries) {
  int sent = 0;
  LossyPath lossy = path(
      [&](int) {
        ++sent;
        return 0;
      },
      all);
  if (is_leader()) {
    EXPECT_THROW(Verification<LossyPath>(lossy, task).run(), Failure);
    EXPECT_EQ(sent, static_cast<int>(first_tries));
  } else {
    Verification<LossyPath>(lossy, task).run();
  }
}

/// A bit of every message arrives changed, of those that come back as of those that go there.
class ChangingPath : public LossyPath {
 public:
  using LossyPath::LossyPath;
  void send(std::span<const std::byte> message) {
    std::vector<std::byte> changed(message.begin(), message.end());
    changed.back() ^= std::byte{4};
    LossyPath::send(changed);
  }
};
static_assert(Transport<ChangingPath>);

TEST_F(LossyPair, APayloadThatBothWaysChangeAlikeIsFound) {
  for (const std::size_t payload : {1U, 56U}) {
    probe.message_bytes = sizeof(DatagramHeader) + payload;
    ChangingPath changing(is_leader() ? 1U : 0U, all);
    Verification<ChangingPath> verification(changing, task);
    if (!is_leader()) {
      verification.run();
      continue;
    }
    try {
      verification.run();
      ADD_FAILURE() << "nothing was found in a payload of " << payload << " B";
    } catch (const Failure& failure) {
      EXPECT_EQ(failure.code(), FailureCode::corrupted);
    }
  }
}

TEST_F(LossyPair, ARetryIsAnsweredThoughTheFollowerReadsItBeforeItsOrder) {
  probe.verify_messages = 1;
  LossyPath lossy = path([](int number) { return number == 0 ? 0 : 1; }, all);
  if (!is_leader()) lossy.sit_in_receive(1);
  Verification<LossyPath>(lossy, task).run();
  EXPECT_EQ(counters.verified, is_leader() ? 1U : 0U);
  EXPECT_EQ(lossy.sent(), is_leader() ? 2 : 1);
}

TEST_F(LossyPair, ABurstIsAnsweredThoughTheFollowerReadsItsFirstMessageBeforeItsOrder) {
  constexpr int messages = 4;
  // The last message of the first order is lost: the follower waits for it when the second order comes.
  LossyPath lossy = path([](int number) { return number == 2 * messages - 1 ? 0 : 1; }, all);
  if (!is_leader()) lossy.sit_in_receive(1);
  CountedBursts<LossyPath, NoHooks> bursts(lossy, task, messages, {});
  if (!is_leader()) {
    follow_orders(bursts, task);
    EXPECT_EQ(lossy.sent(), 4) << "five bursts, of which one is not whole";
    return;
  }
  lead_orders(bursts, {1, 2});
  EXPECT_EQ(samples.measured.size(), 2U);
}

TEST_F(LossyPair, ALossThatLastsLongerThanTheCellDoesNotFailIt) {
  // The first order has an untimed message and a timed one.
  LossyPath lossy = path([](int number) { return number == 1 ? 0 : 1; }, all);
  EXPECT_EQ(who_failed(fails<Pingpong>(lossy)), "");
  EXPECT_EQ(samples.measured.size() > 0, is_leader());
}

TEST_F(LossyPair, APhaseInWhichNothingIsAnsweredIsGivenUpAfterAFewTries) {
  LossyPath lossy = path(none, all);
  EXPECT_EQ(who_failed(fails<Pingpong>(lossy)), "leader");
  EXPECT_EQ(lossy.sent(), is_leader() ? 2 * static_cast<int>(first_tries) : 0) << "an untimed one before each";
}

TEST_F(LossyPair, StampsOfEachDirectionAreExchangedAfterTheTiming) {
  LossyPath lossy = path(all, all);
  EXPECT_EQ(who_failed(fails<Oneway>(lossy)), "");
  if (!is_leader()) return;
  ASSERT_EQ(findings.channels.size(), 2U);
  EXPECT_GT(samples.measured.size(), 0U);
  for (const ChannelReport& channel : findings.channels) {
    EXPECT_EQ(channel.time_ns.size(), samples.measured.size());
  }
}

TEST_F(LossyPair, ALeaderThatFailsIsSentNoStamps) {
  LossyPath lossy = path(all, none);
  EXPECT_EQ(who_failed(fails<Oneway>(lossy)), "leader");
  EXPECT_EQ(who_failed(false), "") << "nothing is left of it";
}

TEST_F(LossyPair, ALeaderWhoseFollowerFailsWaitsForNoStamps) {
  const auto third_fails = [](int number) {
    if (number == 2) throw Failure(FailureCode::unreachable, "the link is down");
    return 1;
  };
  LossyPath lossy = path(all, third_fails);
  EXPECT_EQ(who_failed(fails<Oneway>(lossy, time_for_several)), "follower");
  EXPECT_EQ(who_failed(false), "") << "nothing is left of it";
}

TEST_F(LossyPair, AReceiveThatIsPostedAheadStaysWhereItIsWhenItsMessageIsLost) {
  // An untimed message and five timed ones, of which the last two are not answered.
  PrepostingLossyPath lossy(1 - team.member(), [&](int number) { return is_leader() || number < 4 ? 1 : 0; });
  {
    CountedRounds<PrepostingLossyPath, NoHooks> rounds(lossy, task);
    if (!is_leader()) return follow_orders(rounds, task);
    lead_orders(rounds, {5});
    EXPECT_EQ(samples.measured.size(), 3U);
    EXPECT_EQ(rounds.counters().lost, 2U);
  }
  EXPECT_EQ(lossy.preposted(), 5) << "one for each answer that came, and one that waits";
  EXPECT_TRUE(lossy.is_kept()) << "the layer still owns its memory";
}

TEST_F(LossyPair, BothEndsOfARoundTripPostTheirReceivesBeforeTheySend) {
  constexpr std::uint64_t round_trips = 6;
  FaithfulDevice device(Attachment{});
  auto path = device.open<Receive::blocking>(Site{.token = 1});
  const std::string own = path.address();
  std::string others(own.size(), ' ');  // names that the kernel gives are of one length
  const int peer = is_leader() ? 1 : 0;
  MPI_Sendrecv(own.data(), static_cast<int>(own.size()), MPI_CHAR, peer, 0, others.data(),
               static_cast<int>(others.size()), MPI_CHAR, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  path.meet(others);
  Rounds<decltype(path)> rounds(path, task);
  if (is_leader()) {
    lead_orders(rounds, {round_trips - 1});
  } else {
    follow_orders(rounds, task);
  }
  const InterfaceBytes preposted = device.traffic().at("faithful preposted");
  EXPECT_EQ(preposted.received, round_trips * probe.message_bytes);
  // No message comes behind the last one of an order.
  EXPECT_EQ(preposted.sent, (is_leader() ? round_trips : round_trips - 1) * probe.message_bytes);
}

TEST_F(LossyPair, InABurstADoubleDoesNotStandInForALostMessage) {
  constexpr int messages = 4;
  // The first burst is untimed; of the third the first message comes twice and the second never.
  LossyPath lossy = path(
      [](int number) {
        if (number == 2 * messages) return 2;
        return number == 2 * messages + 1 ? 0 : 1;
      },
      all);
  CountedBursts<LossyPath, NoHooks> bursts(lossy, task, messages, {});
  if (!is_leader()) return follow_orders(bursts, task);
  lead_orders(bursts, {3});
  EXPECT_EQ(samples.measured.size(), 2U);
  EXPECT_EQ(bursts.counters().lost, 1U);
}

TEST_F(LossyPair, ABurstOfWhichAMessageIsDoubledIsWhole) {
  LossyPath lossy = path([](int) { return 2; }, [](int) { return 2; });
  CountedBursts<LossyPath, NoHooks> bursts(lossy, task, 4, {});
  if (!is_leader()) return follow_orders(bursts, task);
  lead_orders(bursts, {3});
  EXPECT_EQ(samples.measured.size(), 3U);
  EXPECT_EQ(bursts.counters().lost, 0U);
}

}  // namespace
}  // namespace fabricbench

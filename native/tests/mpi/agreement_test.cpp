#include "probe/agreement.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <new>
#include <thread>

namespace fabricbench {
namespace {

/// Says where it is and remembers whom it met.
class FakeEnd final : public Endpoint {
 public:
  FakeEnd(std::string address, std::string* met) : address_(std::move(address)), met_(met) {}
  std::string address() const override { return address_; }
  void meet(std::string_view peer) override { *met_ = peer; }
  void check_size(std::size_t, std::size_t) const override {}
  std::unique_ptr<Prepared> prepare_verification(Task&) override { return nullptr; }
  std::unique_ptr<Prepared> prepare(Pattern, Task&) override { return nullptr; }
  std::unique_ptr<Prepared> prepare_group_verification(std::span<const Member>, Task&) override { return nullptr; }
  std::unique_ptr<Prepared> prepare_group(std::span<const Member>, Task&) override { return nullptr; }

 private:
  std::string address_;
  std::string* met_;
};

/// Both ranks of a cell, each named after its machine.
class TwoAgree : public testing::Test {
 protected:
  bool is_first() const { return team_.member() == 0; }

  /// What all say that something failed of; nothing where it did not.
  std::string failure_of(const std::function<void()>& action) const {
    try {
      action();
    } catch (const AgreedFailure& agreed) {
      return std::string(name_of(agreed.failure.code)) + ": " + agreed.failure.reason;
    }
    return {};
  }
  std::string failure_on(std::optional<FailureCode> first, std::optional<FailureCode> second) const {
    return failure_of([&] {
      agreement_.on([&] {
        if (const auto code = is_first() ? first : second) throw Failure(*code, "no way");
      });
    });
  }

  Control control_;
  CellTeam team_{control_, {0, 1}, 0};
  Agreement agreement_{team_, control_.rank() == 0 ? "n0" : "n1"};

  // Two paths to the other rank.
  std::vector<Link> links_{{.peer = 1 - team_.member(), .flow = 0}, {.peer = 1 - team_.member(), .flow = 1}};
  std::vector<PathCache::Key> keys_{{Layer::udp, 1 - control_.rank(), 0, Receive::blocking},
                                    {Layer::udp, 1 - control_.rank(), 1, Receive::blocking}};
  PathCache paths_;
  std::vector<std::uint32_t> opened_;  // generations, in the order of opening
  std::string met_;

  PathMaker maker() {
    return {.open =
                [this](const PathCache::Key& key, std::uint32_t generation) {
                  opened_.push_back(generation);
                  return std::make_unique<FakeEnd>(
                      "end of " + std::to_string(control_.rank()) + " for flow " + std::to_string(key.flow), &met_);
                },
            .check = [](const Endpoint&) {}};
  }
  std::vector<Endpoint::Member> open(const PathMaker& maker) {
    return agreement_.open_paths(paths_, links_, keys_, maker);
  }
};

TEST_F(TwoAgree, WhereNothingFailsAllGoOn) { EXPECT_EQ(failure_on({}, {}), ""); }

TEST_F(TwoAgree, AFailureOfOneIsThatOfAllAndNamesIt) {
  EXPECT_EQ(failure_on(FailureCode::permission, {}), "permission: rank 0 on n0: no way");
  EXPECT_EQ(failure_on({}, FailureCode::unreachable), "unreachable: rank 1 on n1: no way");
}

TEST_F(TwoAgree, OfSeveralFailuresOneThatIsNoTimeoutIsTheCause) {
  EXPECT_EQ(failure_on(FailureCode::timeout, FailureCode::corrupted), "corrupted: rank 1 on n1: no way");
  EXPECT_EQ(failure_on(FailureCode::corrupted, FailureCode::timeout), "corrupted: rank 0 on n0: no way");
  EXPECT_EQ(failure_on(FailureCode::timeout, FailureCode::timeout), "timeout: rank 1 on n1: no way");
}

TEST_F(TwoAgree, ARankWithoutMemoryFailsTheCellAndNotTheLaunch) {
  EXPECT_EQ(failure_of([&] {
              agreement_.on([&] {
                if (is_first()) throw std::bad_alloc();
              });
            }),
            "error: rank 0 on n0: out of memory: use smaller messages or fewer samples");
}

TEST_F(TwoAgree, AFailureWithATextOfAnyBytesIsTold) {
  EXPECT_EQ(failure_of([&] {
              agreement_.on([&] {
                if (is_first()) throw Failure(FailureCode::error, "\xff");
              });
            }),
            "error: rank 0 on n0: \xff");
}

TEST_F(TwoAgree, AllBeginWhenTheFirstProposes) {
  const std::int64_t now = is_first() ? 1'000 : 5'000'000'000;
  EXPECT_EQ(agreement_.common_start(now), 1'000 + 10'000'000 + 2 * 500'000);
}

TEST_F(TwoAgree, EachEndIsOpenedOnceAndMeetsTheOther) {
  const std::vector<Endpoint::Member> members = open(maker());
  ASSERT_EQ(members.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(members[i].link, links_[i]);
    EXPECT_EQ(members[i].peer_rank, 1 - control_.rank());
    EXPECT_EQ(members[i].endpoint, paths_.find(keys_[i]));
  }
  EXPECT_EQ(met_, "end of " + std::to_string(1 - control_.rank()) + " for flow 1");
  EXPECT_EQ(opened_, (std::vector<std::uint32_t>{0, 0}));
  const std::vector<Endpoint::Member> again = open(maker());
  EXPECT_EQ(opened_.size(), 2U) << "paths that both have are used again";
  EXPECT_EQ(again[0].endpoint, members[0].endpoint);
}

TEST_F(TwoAgree, MessagesGoOnFromTheEndThatIsFurtherOn) {
  open(maker())[1].endpoint->sequence = is_first() ? 70 : 50;
  const std::vector<Endpoint::Member> members = open(maker());
  EXPECT_EQ(members[0].endpoint->sequence, 1U);
  EXPECT_EQ(members[1].endpoint->sequence, 70U);
}

TEST_F(TwoAgree, APathThatOneEndHasClosedIsOpenedAnewByBothAndNoOther) {
  open(maker());
  if (is_first()) paths_.close(keys_[1]);
  opened_.clear();
  open(maker());
  EXPECT_EQ(opened_, (std::vector<std::uint32_t>{1}));
  EXPECT_EQ(paths_.state(keys_[0]), (PathCache::State{.is_open = true, .generation = 0, .sequence = 1}));
  EXPECT_EQ(paths_.state(keys_[1]), (PathCache::State{.is_open = true, .generation = 1, .sequence = 1}));
}

TEST_F(TwoAgree, WhereOneEndCannotBeOpenedAllKnowAndNoneIsKept) {
  PathMaker broken = maker();
  if (!is_first()) {
    broken.open = [](const PathCache::Key& key, std::uint32_t) -> std::unique_ptr<Endpoint> {
      throw Failure(FailureCode::permission, "no flow " + std::to_string(key.flow));
    };
  }
  EXPECT_EQ(failure_of([&] { open(broken); }), "permission: rank 1 on n1: no flow 0");
  for (const PathCache::Key& key : keys_) EXPECT_EQ(paths_.find(key), nullptr);
  EXPECT_EQ(failure_of([&] { open(maker()); }), "") << "and the next cell may try again";
}

TEST_F(TwoAgree, APathThatDoesNotCarryTheMessagesIsRefusedByAll) {
  PathMaker small = maker();
  if (is_first()) small.check = [](const Endpoint&) { throw Failure(FailureCode::unsupported, "too large"); };
  EXPECT_EQ(failure_of([&] { open(small); }), "unsupported: rank 0 on n0: too large");
}

// On four ranks, of which the first three are a cell: something fails on the last of it.
class SeveralRanksAgree : public testing::Test {
 protected:
  std::string failing() const {
    try {
      agreement_.on([&] {
        if (control_.rank() == 2) throw Failure(FailureCode::error, "MPI_Bcast failed");
      });
    } catch (const ControlError& error) {
      return error.what();
    } catch (const LaunchEnded& ended) {
      control_.confirm(ended);
      return ended.failure_here().value_or("nothing") + ", ended by " + ended.what();
    }
    return "nobody ended the launch";
  }
  /// Take no part until others have ended the launch.
  void hang(double seconds) const {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    try {
      control_.receive_patiently(0, 9);
      ADD_FAILURE() << "nothing was sent";
    } catch (const LaunchEnded& ended) {
      control_.confirm(ended);
    }
  }

  Control control_;
  CellTeam team_{control_, {0, 1, 2}, 0};
  Agreement agreement_{team_, "host"};
};

TEST_F(SeveralRanksAgree, WhoGivesUpOneThatHangsTellsFirstWhatFailedOnAnother) {
  if (control_.size() < 4) GTEST_SKIP() << "needs four ranks";
  constexpr double patience_seconds = 2;
  control_.set_patience(patience_seconds);
  MPI_Barrier(MPI_COMM_WORLD);
  if (control_.rank() == 1) {
    hang(patience_seconds * 1.3);
  } else if (control_.rank() == 3) {
    hang(0);
  } else {
    const std::string said = failing();
    if (control_.rank() == 0) {
      EXPECT_EQ(said.find("rank 2 on host: MPI_Bcast failed; then rank 0 heard nothing from rank 1"), 0U) << said;
      control_.end_all(1, said);
    } else {
      EXPECT_EQ(said.find("nothing, ended by rank 2 on host: MPI_Bcast failed; then"), 0U) << said;
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_F(SeveralRanksAgree, WhatFailedHereIsKnownWhereAnotherThatDoesNotKnowItEndsTheLaunch) {
  if (control_.size() < 4) GTEST_SKIP() << "needs four ranks";
  MPI_Barrier(MPI_COMM_WORLD);
  if (control_.rank() == 3) {
    control_.end_all(3, "a full disk");
  } else if (control_.rank() == 2) {
    EXPECT_EQ(failing(), "rank 2 on host: MPI_Bcast failed, ended by a full disk");
  } else {
    hang(0);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

}  // namespace
}  // namespace fabricbench

// Patterns of plain writes, between two ranks that write into each other's shared memory.
#include "pattern/written.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "pattern/paced.hpp"
#include "pattern/pingpong.hpp"
#include "pattern/stream.hpp"
#include "task_of_team.hpp"

namespace fabricbench {
namespace {

/// Memory of which each rank lends a part, and the other can write into it.
class SharedMemory {
 public:
  explicit SharedMemory(int peer) {
    std::byte* own = nullptr;
    MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &own, &window_);
    MPI_Aint size = 0;
    int unit = 0;
    MPI_Win_shared_query(window_, peer, &size, &unit, &peer_);
    own_ = {own, bytes};
    std::ranges::fill(own_, std::byte{0});
    MPI_Barrier(MPI_COMM_WORLD);
  }
  ~SharedMemory() { MPI_Win_free(&window_); }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  MessageBuffer lend(std::size_t size) {
    std::byte* const begin = &own_[lent_];
    lent_ += size;
    return {std::shared_ptr<std::byte>(begin, [](std::byte*) {}), size};
  }
  std::uint64_t place_of(const std::byte* memory) const { return static_cast<std::uint64_t>(memory - own_.data()); }
  std::byte* of_peer(std::uint64_t place) const { return peer_ + place; }

 private:
  static constexpr std::size_t bytes = 1 << 16;
  MPI_Win window_ = MPI_WIN_NULL;
  std::span<std::byte> own_;
  std::byte* peer_ = nullptr;
  std::size_t lent_ = 0;
};

/// Writes there; each is complete at once, and those that were waited for are counted.
class SharedWrites {
 public:
  static constexpr Traits traits{
      .is_reliable = true, .is_ordered = true, .framing = Framing::message, .smallest_message = 1};
  static constexpr bool adds = false;
  static constexpr bool writes = true;
  struct Pool {
    void post(std::size_t, SharedWrites&, std::span<std::byte>) {}
    std::span<const int> test() { return {}; }
    void release(std::size_t, const std::shared_ptr<const void>&) {}
  };

  explicit SharedWrites(SharedMemory& memory) : memory_(memory) {}
  std::size_t largest_message() const { return 4096; }
  std::string address() const { return {}; }
  void meet(std::string_view) {}
  void set_bound(double) {}
  std::size_t depth() const { return 4; }
  Exposed expose(std::span<std::byte> memory) const { return {.address = memory_.place_of(memory.data())}; }
  void aim_at(Exposed exposed) { aim_ = memory_.of_peer(exposed.address); }
  std::uint64_t operate(std::span<std::byte> memory, bool /*wants_completion*/ = true) {
    std::memcpy(aim_, memory.data(), memory.size() - 1);
    __atomic_store_n(reinterpret_cast<unsigned char*>(aim_ + memory.size() - 1),
                     std::to_integer<unsigned char>(memory.back()), __ATOMIC_RELEASE);
    return ++operated_;
  }
  void wait_for(std::uint64_t number) { EXPECT_LE(number, operated_); }
  void wait_for_byte(const std::byte& place, std::byte value) {
    const auto* const at = reinterpret_cast<const unsigned char*>(&place);
    while (__atomic_load_n(at, __ATOMIC_ACQUIRE) != std::to_integer<unsigned char>(value)) sched_yield();
  }
  void release(const std::shared_ptr<const void>&) {}
  Pool make_pool(std::size_t) const { return {}; }
  std::uint64_t operated() const { return operated_; }

 private:
  SharedMemory& memory_;
  std::byte* aim_ = nullptr;
  std::uint64_t operated_ = 0;
};
static_assert(WritingTransport<SharedWrites> && !OneSidedTransport<SharedWrites> && !Transport<SharedWrites>);

class PlainWrites : public testing::Test, protected TaskOfTeam {
 protected:
  PlainWrites() {
    probe.message_bytes = 100;
    probe.warmup_samples = 0;
    probe.verify_messages = 3;
    probe.stopping = {.minimum_samples = 4, .maximum_samples = 4, .maximum_seconds = 20};
    samples.prepare(0, 4, true);
    task.allocate = [this](std::size_t bytes) { return memory.lend(bytes); };
  }
  void TearDown() override {
    MPI_Barrier(MPI_COMM_WORLD);
    team.discard_leftovers();
  }
  bool is_first() const { return team.member() == 0; }

  SharedMemory memory{static_cast<int>(1 - team.member())};
  SharedWrites path{memory};
};

TEST_F(PlainWrites, ComeBackTurnedWhenTheyAreVerified) {
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{2}, std::size_t{100}}) {
    probe.message_bytes = bytes;
    Verification<SharedWrites>(path, task).run();
  }
  EXPECT_EQ(counters.verified, is_first() ? 9U : 0U);
  EXPECT_EQ(counters.corrupted, 0U);
}

TEST_F(PlainWrites, GoThereAndBackOnceForEachRoundTrip) {
  probe.parameters["round_trips"] = 3;
  const Outcome outcome = Pingpong::Over<SharedWrites>(path, task).run();
  EXPECT_EQ(outcome.bytes_per_sample, 2 * 3 * 100U);
  EXPECT_EQ(path.operated() % 3, 0U);
  EXPECT_GE(path.operated(), 5 * 3U);
  if (!is_first()) return;
  EXPECT_EQ(samples.measured.size(), 4U);
  EXPECT_EQ(counters.sent, 4 * 3U);
}

TEST_F(PlainWrites, AreCountedByOneByteHoweverManyThereAre) {
  probe.stopping = {.minimum_samples = 700, .maximum_samples = 700, .maximum_seconds = 20};
  samples.prepare(0, 700, false);
  Pingpong::Over<SharedWrites>(path, task).run();
  EXPECT_EQ(samples.measured.size(), is_first() ? 700U : 0U);
}

TEST_F(PlainWrites, OfAStreamAreTimedByWhoWrites) {
  probe.pattern = Pattern::stream;
  probe.messages_per_sample = 8;
  const Outcome outcome = Stream::Over<SharedWrites>(path, task).run();
  EXPECT_EQ(outcome.bytes_per_sample, 8 * 100U);
  EXPECT_EQ(outcome.stop.has_value(), is_first());
  EXPECT_EQ(samples.measured.size(), is_first() ? 4U : 0U);
  EXPECT_EQ(counters.sent, is_first() ? 4 * 8U : 0U);
  EXPECT_EQ(counters.verified, is_first() ? 0U : 1U) << "who is written into looks what has come";
  EXPECT_EQ(counters.corrupted, 0U);
}

}  // namespace
}  // namespace fabricbench

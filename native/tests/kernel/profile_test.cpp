// Counting on ranks that really talk; run by mpiexec on 1 and on 3 ranks, every rank runs every test.
#include "kernel/frame/profile.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "kernel/frame/kernel.hpp"

namespace fabricbench::kernel {
namespace {

class Profiling : public testing::Test {
 protected:
  Profiling() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    others = static_cast<std::uint64_t>(size - 1);
    numbers.resize(static_cast<std::size_t>(4 * size));
    received.resize(numbers.size());
    reset_counts();
  }

  static const CallTotal& total(std::string_view call) {
    return counts().calls[static_cast<std::size_t>(std::ranges::find(counted_calls, call) - counted_calls.begin())];
  }
  static std::uint64_t messages(std::size_t bin) { return counts().message_sizes[bin]; }
  bool is_alone() const { return size == 1; }

  int rank = 0;
  int size = 1;
  std::uint64_t others = 0;
  std::vector<double> numbers;
  std::vector<double> received;
};

constexpr std::size_t bin_of_8 = 4;
constexpr std::size_t bin_of_16 = 5;

TEST_F(Profiling, CountsNothingOutsideASection) {
  MPI_Barrier(MPI_COMM_WORLD);
  TimedSection section(MPI_COMM_WORLD);
  section.end();
  MPI_Allreduce(numbers.data(), received.data(), 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  for (const CallTotal& call : counts().calls) EXPECT_EQ(call.number, 0U);
}

TEST_F(Profiling, AddsUpSectionsAndCallsOfAKind) {
  double seconds = 0;
  for (int i = 0; i < 3; ++i) {
    TimedSection section(MPI_COMM_WORLD);
    MPI_Allreduce(numbers.data(), received.data(), 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    seconds += section.end();
  }
  EXPECT_EQ(total("MPI_Allreduce").number, 3U);
  EXPECT_EQ(total("MPI_Allreduce").bytes, is_alone() ? 0U : 48U);
  EXPECT_EQ(messages(bin_of_16), is_alone() ? 0U : 3U);
  EXPECT_GT(total("MPI_Allreduce").time_ns, 0U);
  EXPECT_GE(counts().section_ns, total("MPI_Allreduce").time_ns);
  EXPECT_LE(static_cast<double>(counts().section_ns), seconds * 1e9 + 3);  // a section's time is the slowest rank's
}

TEST_F(Profiling, CountsMessagesAtTheirSenderAndNoneToItselfOrNobody) {
  const int to = (rank + 1) % size;
  const int from = (rank + size - 1) % size;
  TimedSection section(MPI_COMM_WORLD);
  std::array<MPI_Request, 2> requests{};
  MPI_Irecv(received.data(), 1, MPI_DOUBLE, from, 0, MPI_COMM_WORLD, requests.data());
  MPI_Isend(numbers.data(), 1, MPI_DOUBLE, to, 0, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
  MPI_Send(numbers.data(), 1, MPI_DOUBLE, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
  MPI_Sendrecv(numbers.data(), 2, MPI_DOUBLE, rank, 1, received.data(), 2, MPI_DOUBLE, rank, 1, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  section.end();
  EXPECT_EQ(total("MPI_Isend").bytes, is_alone() ? 0U : 8U);
  EXPECT_EQ(total("MPI_Send").bytes + total("MPI_Sendrecv").bytes + total("MPI_Irecv").bytes, 0U);
  EXPECT_EQ(total("MPI_Send").number, 1U);
  EXPECT_EQ(total("MPI_Sendrecv").number, 1U);
  EXPECT_EQ(total("MPI_Waitall").number, 1U);
  EXPECT_EQ(messages(bin_of_8), is_alone() ? 0U : 1U);
  EXPECT_EQ(messages(bin_of_16), 0U);
}

TEST_F(Profiling, CountsACollectiveWithWhatARankHandsOverForOthers) {
  const int last = size - 1;
  TimedSection section(MPI_COMM_WORLD);
  MPI_Bcast(numbers.data(), 1, MPI_DOUBLE, last, MPI_COMM_WORLD);
  MPI_Reduce(numbers.data(), received.data(), 1, MPI_DOUBLE, MPI_SUM, last, MPI_COMM_WORLD);
  MPI_Gather(numbers.data(), 1, MPI_DOUBLE, received.data(), 1, MPI_DOUBLE, last, MPI_COMM_WORLD);
  MPI_Scatter(numbers.data(), 1, MPI_DOUBLE, received.data(), 1, MPI_DOUBLE, last, MPI_COMM_WORLD);
  MPI_Alltoall(numbers.data(), 2, MPI_DOUBLE, received.data(), 2, MPI_DOUBLE, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  section.end();
  const bool is_root = rank == last;
  EXPECT_EQ(total("MPI_Bcast").bytes, is_root && !is_alone() ? 8U : 0U);
  EXPECT_EQ(total("MPI_Reduce").bytes, is_root ? 0U : 8U);
  EXPECT_EQ(total("MPI_Gather").bytes, is_root ? 0U : 8U);
  EXPECT_EQ(total("MPI_Scatter").bytes, is_root ? 8 * others : 0U);
  EXPECT_EQ(total("MPI_Alltoall").bytes, 16 * others);
  EXPECT_EQ(total("MPI_Barrier").bytes, 0U);
  EXPECT_EQ(messages(bin_of_16), others);
}

TEST_F(Profiling, CountsAOneSidedAccessAtTheRankThatMakesIt) {
  const int next = (rank + 1) % size;
  std::int64_t* memory = nullptr;
  MPI_Win window = MPI_WIN_NULL;
  MPI_Win_allocate(4 * sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
  MPI_Win_lock_all(0, window);
  const std::array<std::int64_t, 2> out{};
  std::array<std::int64_t, 2> in{};
  TimedSection section(MPI_COMM_WORLD);
  MPI_Get(in.data(), 2, MPI_INT64_T, next, 0, 2, MPI_INT64_T, window);
  MPI_Get(in.data(), 2, MPI_INT64_T, rank, 0, 2, MPI_INT64_T, window);
  MPI_Win_flush_all(window);
  MPI_Put(out.data(), 1, MPI_INT64_T, next, 2, 1, MPI_INT64_T, window);
  MPI_Fetch_and_op(out.data(), in.data(), MPI_INT64_T, next, 3, MPI_SUM, window);
  MPI_Win_flush(next, window);
  section.end();
  MPI_Win_unlock_all(window);
  MPI_Win_free(&window);
  EXPECT_EQ(total("MPI_Get").number, 2U);
  EXPECT_EQ(total("MPI_Get").bytes, is_alone() ? 0U : 16U);
  EXPECT_EQ(total("MPI_Put").bytes, is_alone() ? 0U : 8U);
  EXPECT_EQ(total("MPI_Fetch_and_op").bytes, is_alone() ? 0U : 8U);
  EXPECT_EQ(total("MPI_Win_flush").number + total("MPI_Win_flush_all").number, 2U);
  EXPECT_EQ(messages(bin_of_8), is_alone() ? 0U : 2U);
  EXPECT_EQ(messages(bin_of_16), is_alone() ? 0U : 1U);
}

TEST_F(Profiling, CountsMessagesOfUnequalSizesOneByOne) {
  std::vector<int> out(static_cast<std::size_t>(size));
  std::vector<int> offsets(out.size());
  std::vector<int> in(out.size(), rank);
  for (int to = 0; to < size; ++to) {
    out[static_cast<std::size_t>(to)] = to;  // none for rank 0, one number for rank 1, two for rank 2
    offsets[static_cast<std::size_t>(to)] = 4 * to;
  }
  TimedSection section(MPI_COMM_WORLD);
  MPI_Alltoallv(numbers.data(), out.data(), offsets.data(), MPI_DOUBLE, received.data(), in.data(), offsets.data(),
                MPI_DOUBLE, MPI_COMM_WORLD);
  section.end();
  EXPECT_EQ(messages(bin_of_8), size > 1 && rank != 1 ? 1U : 0U);
  EXPECT_EQ(messages(bin_of_16), size > 2 && rank != 2 ? 1U : 0U);
  EXPECT_EQ(messages(0), 0U);
  EXPECT_EQ(total("MPI_Alltoallv").bytes, 8 * messages(bin_of_8) + 16 * messages(bin_of_16));
}

TEST_F(Profiling, TakesTheSizeFromTheReceivingSideOfACallInPlace) {
  TimedSection section(MPI_COMM_WORLD);
  MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, received.data(), 1, MPI_DOUBLE, MPI_COMM_WORLD);
  MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, received.data(), 2, MPI_DOUBLE, MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, received.data(), 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  section.end();
  EXPECT_EQ(total("MPI_Allgather").bytes, is_alone() ? 0U : 8U);
  EXPECT_EQ(total("MPI_Alltoall").bytes, 16 * others);
  EXPECT_EQ(total("MPI_Allreduce").bytes, is_alone() ? 0U : 8U);
}

TEST_F(Profiling, GathersEachRanksShareAndTheSumsOfAll) {
  TimedSection section(MPI_COMM_WORLD);
  MPI_Bcast(numbers.data(), 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  section.end();
  const Profile profile = gather_profile(MPI_COMM_WORLD);
  if (rank != 0) {
    EXPECT_TRUE(profile.ranks.empty());
    return;
  }
  ASSERT_EQ(profile.ranks.size(), static_cast<std::size_t>(size));
  std::uint64_t calls = 0;
  for (const CallTotal& call : profile.calls) calls += call.number;
  EXPECT_EQ(calls, 2 * (others + 1));
  EXPECT_EQ(profile.ranks[0].bytes_sent, is_alone() ? 0 : 8);
  for (const RankShare& share : profile.ranks) {
    EXPECT_GT(share.mpi_seconds, 0);
    EXPECT_GE(share.section_seconds, share.mpi_seconds);
  }
  if (!is_alone()) {
    EXPECT_EQ(profile.ranks[1].bytes_sent, 0);
    EXPECT_EQ(profile.message_sizes[bin_of_8], 1U);
  }
}

}  // namespace
}  // namespace fabricbench::kernel

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  MPI_Init(&argc, &argv);
  const int failed = RUN_ALL_TESTS();
  MPI_Finalize();
  return failed;
}

#include "kernel/frame/profile.hpp"

#include <type_traits>

namespace fabricbench::npb {
namespace {

constexpr double seconds_of_ns = 1e-9;

RankShare own_share() {
  RankShare share;
  share.section_seconds = static_cast<double>(counts().section_ns) * seconds_of_ns;
  for (const CallTotal& call : counts().calls) {
    share.mpi_seconds += static_cast<double>(call.time_ns) * seconds_of_ns;
    share.bytes_sent += static_cast<double>(call.bytes);
  }
  return share;
}

/// Sum on rank 0 what consists of 64-bit counters only.
template <class Numbers>
void sum_counters(const Numbers& own, Numbers& sum, MPI_Comm communicator) {
  static_assert(std::is_trivially_copyable_v<Numbers> && sizeof(Numbers) % sizeof(std::uint64_t) == 0);
  MPI_Reduce(&own, &sum, static_cast<int>(sizeof(Numbers) / sizeof(std::uint64_t)), MPI_UINT64_T, MPI_SUM, 0,
             communicator);
}

}  // namespace

Counts& counts() {
  static constinit Counts instance;
  return instance;
}

void reset_counts() {
  counts() = Counts{};
  reset_interface_use();
}

Profile gather_profile(MPI_Comm communicator) {
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(communicator, &rank);
  MPI_Comm_size(communicator, &size);
  Profile profile;
  if (rank == 0) profile.ranks.resize(static_cast<std::size_t>(size));
  const RankShare share = own_share();
  constexpr int numbers = sizeof(RankShare) / sizeof(double);
  MPI_Gather(&share, numbers, MPI_DOUBLE, profile.ranks.data(), numbers, MPI_DOUBLE, 0, communicator);
  sum_counters(counts().calls, profile.calls, communicator);
  sum_counters(counts().message_sizes, profile.message_sizes, communicator);
  profile.interfaces = interface_use();
  return profile;
}

}  // namespace fabricbench::npb

#include "kernel/frame/profile.hpp"

#include <type_traits>

#include "base/clock.hpp"
#include "kernel/frame/kernel.hpp"

namespace fabricbench::kernel {
namespace {

constexpr double seconds_of_ns = 1e-9;

/// What the interfaces of this host carried in timed sections. Files are read for it, so never inside one.
struct InterfaceUse {
  Traffic total;
  Traffic before;
};

InterfaceUse& interface_use() {
  static InterfaceUse instance;
  return instance;
}

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

bool is_first(MPI_Comm communicator) {
  int rank = 0;
  MPI_Comm_rank(communicator, &rank);
  return rank == 0;
}

}  // namespace

Counts& counts() {
  static constinit Counts instance;
  return instance;
}

void reset_counts() {
  counts() = Counts{};
  interface_use() = {};
}

TimedSection::TimedSection(MPI_Comm communicator) : communicator_(communicator) {
  if (is_first(communicator_)) interface_use().before = read_traffic_counters();
  MPI_Barrier(communicator_);
  counts().is_on = true;
  begin_ns_ = KernelClock::now();
}

double TimedSection::end() {
  const std::uint64_t own_ns = KernelClock::now() - begin_ns_;
  counts().is_on = false;
  counts().section_ns += own_ns;
  const double own = static_cast<double>(own_ns) * seconds_of_ns;
  double slowest = 0;
  MPI_Allreduce(&own, &slowest, 1, MPI_DOUBLE, MPI_MAX, communicator_);
  if (is_first(communicator_)) {
    Traffic carried = traffic_between(interface_use().before, read_traffic_counters());
    InterfacesAbove above;
    note_above(carried, above);
    add_traffic(interface_use().total, carried);
  }
  return slowest;
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
  profile.interfaces = interface_use().total;
  return profile;
}

}  // namespace fabricbench::kernel

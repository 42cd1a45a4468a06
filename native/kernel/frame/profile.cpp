#include "kernel/frame/profile.hpp"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>
#include <vector>

#include "base/clock.hpp"
#include "base/json_text.hpp"
#include "core/rank_info.hpp"
#include "kernel/frame/kernel.hpp"

namespace fabricbench::kernel {
namespace {

constexpr double seconds_of_ns = 1e-9;

/// What the interfaces of this host carried in timed sections, on the first rank there. Files are read for it, so never
/// inside one.
struct InterfaceUse {
  Traffic total;
  Traffic before;
  bool is_counted = false;
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

int rank_in(MPI_Comm communicator) {
  int rank = 0;
  MPI_Comm_rank(communicator, &rank);
  return rank;
}

int size_of(MPI_Comm communicator) {
  int size = 1;
  MPI_Comm_size(communicator, &size);
  return size;
}

/// Whether no earlier rank is on this host. Collective.
bool is_first_on_host(MPI_Comm communicator) {
  const std::uint64_t own = std::hash<std::string>{}(host_name());
  std::vector<std::uint64_t> all(static_cast<std::size_t>(size_of(communicator)));
  MPI_Allgather(&own, 1, MPI_UINT64_T, all.data(), 1, MPI_UINT64_T, communicator);
  const auto here = all.begin() + rank_in(communicator);
  return std::find(all.begin(), here, own) == here;
}

/// What each rank says, on rank 0. Collective.
std::vector<std::string> gather_texts(const std::string& own, MPI_Comm communicator) {
  const auto ranks = static_cast<std::size_t>(size_of(communicator));
  const int length = static_cast<int>(own.size());
  std::vector<int> lengths(ranks);
  MPI_Gather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, 0, communicator);
  if (rank_in(communicator) != 0) {
    MPI_Gatherv(own.data(), length, MPI_CHAR, nullptr, nullptr, nullptr, MPI_CHAR, 0, communicator);
    return {};
  }
  std::vector<int> begins;
  int sum = 0;
  for (const int each : lengths) {
    begins.push_back(sum);
    sum += each;
  }
  std::string all(static_cast<std::size_t>(sum), '\0');
  MPI_Gatherv(own.data(), length, MPI_CHAR, all.data(), lengths.data(), begins.data(), MPI_CHAR, 0, communicator);
  std::vector<std::string> texts;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    texts.push_back(all.substr(static_cast<std::size_t>(begins[rank]), static_cast<std::size_t>(lengths[rank])));
  }
  return texts;
}

/// What hosts other than rank 0's counted, on rank 0. Collective.
HostTraffic gather_other_hosts(MPI_Comm communicator) {
  using nlohmann::json;
  const bool tells = interface_use().is_counted && rank_in(communicator) != 0;
  const std::string own = tells ? json_text(json::array({host_name(), interface_use().total})) : std::string();
  HostTraffic hosts;
  for (const std::string& text : gather_texts(own, communicator)) {
    if (text.empty()) continue;
    const json told = parse_json(text);
    hosts[told.at(0).get<std::string>()] = told.at(1).get<Traffic>();
  }
  return hosts;
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
  interface_use().is_counted = is_first_on_host(communicator_);
  if (interface_use().is_counted) interface_use().before = read_traffic_counters();
  MPI_Barrier(communicator_);
  counts().is_on = true;
  begin_ns_ = Clock::now();
}

double TimedSection::end() {
  const std::uint64_t own_ns = Clock::now() - begin_ns_;
  counts().is_on = false;
  counts().section_ns += own_ns;
  const double own = static_cast<double>(own_ns) * seconds_of_ns;
  double slowest = 0;
  MPI_Allreduce(&own, &slowest, 1, MPI_DOUBLE, MPI_MAX, communicator_);
  if (interface_use().is_counted) {
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
  if (rank == 0) profile.interfaces = interface_use().total;
  profile.other_hosts = gather_other_hosts(communicator);
  return profile;
}

}  // namespace fabricbench::kernel

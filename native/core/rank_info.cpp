#include "core/rank_info.hpp"

#include <mpi.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

namespace fabricbench {
namespace {

/// The processors that this rank may run on; none where the kernel does not tell.
std::vector<int> allowed_cpus() {
  constexpr std::size_t most_possible = std::size_t{1} << 20U;
  // The kernel refuses a set that has less room than the machine may have processors, however few there are.
  for (std::size_t possible = CPU_SETSIZE; possible <= most_possible; possible *= 2) {
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(CPU_ALLOC(possible),
                                                               [](cpu_set_t* it) { CPU_FREE(it); });
    const std::size_t bytes = CPU_ALLOC_SIZE(possible);
    if (set == nullptr) break;
    CPU_ZERO_S(bytes, set.get());
    if (sched_getaffinity(0, bytes, set.get()) == 0) {
      std::vector<int> cpus;
      for (std::size_t cpu = 0; cpu < possible; ++cpu) {
        if (CPU_ISSET_S(cpu, bytes, set.get())) cpus.push_back(static_cast<int>(cpu));
      }
      return cpus;
    }
    if (errno != EINVAL) break;
  }
  return {};
}

/// Where a rank runs: on which machine, whatever it is called in a container, and how many threads.
struct Place {
  std::array<char, 64> machine{};
  int threads = 1;
  int cpus = 0;  // that it may run on
};

Place own_place(int threads, std::size_t cpus) {
  Place place{.threads = threads, .cpus = static_cast<int>(cpus)};
  const std::string machine = machine_name();
  machine.copy(place.machine.data(), place.machine.size() - 1);
  return place;
}

bool has_common(std::span<const int> one, std::span<const int> other) {
  return std::ranges::any_of(one, [&](int cpu) { return std::ranges::binary_search(other, cpu); });
}

}  // namespace

bool has_own_processors(MPI_Comm communicator, int threads) {
  int size = 1;
  MPI_Comm_size(communicator, &size);
  const std::vector<int> own_cpus = allowed_cpus();
  const Place own = own_place(threads, own_cpus.size());
  std::vector<Place> all(static_cast<std::size_t>(size));
  MPI_Allgather(&own, sizeof own, MPI_BYTE, all.data(), sizeof own, MPI_BYTE, communicator);
  std::vector<int> counts;
  std::vector<int> firsts;
  int sum = 0;
  for (const Place& place : all) {
    counts.push_back(place.cpus);
    firsts.push_back(sum);
    sum += place.cpus;
  }
  std::vector<int> all_cpus(static_cast<std::size_t>(sum));
  MPI_Allgatherv(own_cpus.data(), own.cpus, MPI_INT, all_cpus.data(), counts.data(), firsts.data(), MPI_INT,
                 communicator);
  int wanted = 0;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].machine != own.machine) continue;
    if (all[rank].cpus == 0) return false;  // it may run on any
    const auto cpus = std::span(all_cpus).subspan(static_cast<std::size_t>(firsts[rank]));
    if (has_common(own_cpus, cpus.first(static_cast<std::size_t>(counts[rank])))) wanted += all[rank].threads;
  }
  return wanted <= own.cpus;
}

std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::string machine_name() {
  std::string machine;
  if (!(std::ifstream("/proc/sys/kernel/random/boot_id") >> machine)) machine = host_name();
  return machine;
}

nlohmann::json rank_info(int rank) {
  return {
      {"rank", rank}, {"host", host_name()}, {"machine", machine_name()}, {"pid", getpid()}, {"cpus", allowed_cpus()}};
}

nlohmann::json rank_info(int rank, const std::optional<Interface>& interface) {
  nlohmann::json info = rank_info(rank);
  if (!interface) return info;
  info["interface"] = interface->name;
  if (interface->address) info["address"] = address_text(*interface->address);
  info["mac"] = mac_text(interface->mac);
  info["mtu"] = interface->mtu;
  return info;
}

std::string mpi_library() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  std::string first_line(text.data());
  first_line.resize(std::min(first_line.size(), first_line.find('\n')));
  std::ranges::replace(first_line, '\t', ' ');
  while (first_line.ends_with('\0') || first_line.ends_with(' ')) first_line.pop_back();
  return first_line;
}

}  // namespace fabricbench

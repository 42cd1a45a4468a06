#include "core/whereabouts.hpp"

#include <mpi.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <vector>

namespace fabricbench {
namespace {

std::vector<int> allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

/// Where a rank runs: on which machine, whatever it is called in a container, and on which of its processors.
struct Place {
  std::array<char, 64> machine{};
  cpu_set_t cpus{};
  int threads = 1;
};

Place own_place(int threads) {
  Place place{.threads = threads};
  std::string machine;
  if (!(std::ifstream("/proc/sys/kernel/random/boot_id") >> machine)) machine = host_name();
  machine.copy(place.machine.data(), place.machine.size() - 1);
  CPU_ZERO(&place.cpus);
  sched_getaffinity(0, sizeof place.cpus, &place.cpus);
  return place;
}

}  // namespace

bool has_own_processors(MPI_Comm communicator, int threads) {
  int size = 1;
  MPI_Comm_size(communicator, &size);
  const Place own = own_place(threads);
  std::vector<Place> all(static_cast<std::size_t>(size));
  MPI_Allgather(&own, sizeof own, MPI_BYTE, all.data(), sizeof own, MPI_BYTE, communicator);
  int wanted = 0;
  for (const Place& other : all) {
    cpu_set_t both;
    CPU_AND(&both, &own.cpus, &other.cpus);
    if (other.machine == own.machine && CPU_COUNT(&both) > 0) wanted += other.threads;
  }
  return wanted <= CPU_COUNT(&own.cpus);
}

std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

nlohmann::json whereabouts(int rank) {
  return {{"rank", rank}, {"host", host_name()}, {"pid", getpid()}, {"cpus", allowed_cpus()}};
}

nlohmann::json whereabouts(int rank, const std::optional<Interface>& interface) {
  nlohmann::json info = whereabouts(rank);
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

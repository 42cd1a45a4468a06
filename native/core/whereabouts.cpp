#include "core/whereabouts.hpp"

#include <mpi.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
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

}  // namespace

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

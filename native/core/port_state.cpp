#include "core/port_state.hpp"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <optional>
#include <system_error>

#include "core/traffic.hpp"

namespace fabricbench {
namespace {

namespace fs = std::filesystem;

/// In both folders of a port's counters, yet no counters of how it fares: the bytes are told as traffic, and how often
/// the driver renews its counters is a setting.
constexpr std::array<std::string_view, 3> apart{"port_xmit_data", "port_rcv_data", "lifespan"};

void read_files(const fs::path& folder, PortCounters& counters) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (std::ranges::find(apart, name) != apart.end()) continue;
    std::ifstream file(entry.path());
    std::uint64_t count = 0;
    if (file >> count) counters[name] = count;
  }
}

bool is_named(const std::string& port, const RdmaEnd& named) {
  const std::size_t slash = port.find('/');
  return port.substr(0, slash) == named.device &&
         (!named.port || port.substr(slash + 1) == std::to_string(*named.port));
}

/// A socket to ask the kernel by, whatever it is of.
class AnySocket {
 public:
  AnySocket() : descriptor_(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {}
  ~AnySocket() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  AnySocket(const AnySocket&) = delete;
  AnySocket& operator=(const AnySocket&) = delete;

  /// Have the kernel fill what ethtool asks for (netdevice(7), linux/ethtool.h); whether it did.
  bool ask(const std::string& interface, void* question) const {
    if (descriptor_ < 0 || interface.size() >= IFNAMSIZ) return false;
    ifreq request{};
    std::memcpy(request.ifr_name, interface.data(), interface.size());
    request.ifr_data = static_cast<char*>(question);
    return ioctl(descriptor_, SIOCETHTOOL, &request) == 0;
  }

 private:
  int descriptor_;
};

/// What ethtool's questions begin with, and the answers that follow it, as bytes that the kernel writes.
template <class Head>
std::vector<std::byte> question(const Head& head, std::size_t answer_bytes) {
  std::vector<std::byte> bytes(sizeof head + answer_bytes);
  std::memcpy(bytes.data(), &head, sizeof head);
  return bytes;
}

std::uint32_t number_of_statistics(const AnySocket& socket, const std::string& interface) {
  ethtool_drvinfo driver{};
  driver.cmd = ETHTOOL_GDRVINFO;
  return socket.ask(interface, &driver) ? driver.n_stats : 0;
}

}  // namespace

bool is_of_link(std::string_view statistic) {
  constexpr std::array<std::string_view, 11> words{"pause", "pfc",   "prio",   "ecn", "cnp", "disca",
                                                   "drop",  "error", "buffer", "crc", "xoff"};
  const bool is_of_queue = statistic.find("queue") != std::string_view::npos ||
                           (statistic.size() > 2 && (statistic.starts_with("rx") || statistic.starts_with("tx")) &&
                            statistic[2] >= '0' && statistic[2] <= '9');
  return !is_of_queue && std::ranges::any_of(words, [&](std::string_view word) {
    return statistic.find(word) != std::string_view::npos;
  });
}

FabricPorts find_ports(const std::optional<Interface>& interface, const RdmaEnd& named, InterfacesAbove& above,
                       const fs::path& root) {
  FabricPorts found;
  for (const auto& [name, bytes] : read_traffic_counters(root)) {
    if (!is_rdma_port(name)) continue;
    const std::vector<std::string>& beside = above.of(name);
    const bool is_ours =
        named.device ? is_named(name, named) : interface && std::ranges::find(beside, interface->name) != beside.end();
    if (!is_ours) continue;
    found.ports.push_back(name);
    for (const std::string& one : beside) {
      if (std::ranges::find(found.interfaces, one) == found.interfaces.end()) found.interfaces.push_back(one);
    }
  }
  // Without RDMA the interface is the port, and its driver tells of pauses and drops.
  if (found.ports.empty() && interface && !named.device) found.interfaces = {interface->name};
  return found;
}

PortState read_port_state(const FabricPorts& of, const fs::path& root) {
  PortState state;
  for (const std::string& name : of.ports) {
    const std::size_t slash = name.find('/');
    const fs::path port = root / "sys/class/infiniband" / name.substr(0, slash) / "ports" / name.substr(slash + 1);
    PortCounters counters;
    read_files(port / "counters", counters);
    read_files(port / "hw_counters", counters);
    if (!counters.empty()) state[name] = std::move(counters);
  }
  for (const std::string& name : of.interfaces) {
    PortCounters counters = read_driver_statistics(name);
    std::erase_if(counters, [](const auto& each) { return !is_of_link(each.first); });
    if (!counters.empty()) state[name] = std::move(counters);
  }
  return state;
}

PortState changes_between(const PortState& before, const PortState& after) {
  PortState changes;
  for (const auto& [port, counters] : after) {
    const auto then = before.find(port);
    if (then == before.end()) continue;
    PortCounters& changed = changes[port];
    for (const auto& [name, count] : counters) {
      const auto start = then->second.find(name);
      if (start != then->second.end() && count > start->second) changed[name] = count - start->second;
    }
  }
  return changes;
}

PortCounters read_driver_statistics(const std::string& interface) {
  const AnySocket socket;
  const std::uint32_t number = number_of_statistics(socket, interface);
  if (number == 0) return {};
  // The kernel writes as many as there are by then, more where the driver has got queues in between.
  const std::size_t room = 2 * std::size_t{number} + 256;
  auto names = question(ethtool_gstrings{.cmd = ETHTOOL_GSTRINGS, .string_set = ETH_SS_STATS, .len = number},
                        room * ETH_GSTRING_LEN);
  auto values = question(ethtool_stats{.cmd = ETHTOOL_GSTATS, .n_stats = number}, room * sizeof(std::uint64_t));
  if (!socket.ask(interface, names.data()) || !socket.ask(interface, values.data())) return {};
  ethtool_gstrings named{};
  ethtool_stats valued{};
  std::memcpy(&named, names.data(), sizeof named);
  std::memcpy(&valued, values.data(), sizeof valued);
  if (named.len != number || valued.n_stats != number) return {};
  PortCounters counters;
  for (std::size_t i = 0; i < number; ++i) {
    const auto* name = reinterpret_cast<const char*>(names.data() + sizeof(ethtool_gstrings) + i * ETH_GSTRING_LEN);
    std::uint64_t value = 0;
    std::memcpy(&value, values.data() + sizeof(ethtool_stats) + i * sizeof value, sizeof value);
    counters[std::string(name, strnlen(name, ETH_GSTRING_LEN))] = value;
  }
  return counters;
}

}  // namespace fabricbench

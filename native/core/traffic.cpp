#include "core/traffic.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <limits>
#include <optional>
#include <set>
#include <sstream>
#include <system_error>

#include "base/folder.hpp"

namespace fabricbench {
namespace {

namespace fs = std::filesystem;

std::string read_text(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string read_word(const fs::path& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

std::optional<std::uint64_t> read_count(const fs::path& path) {
  std::ifstream file(path);
  std::uint64_t count = 0;
  if (file >> count) return count;
  return std::nullopt;
}

/// All interfaces over these: sysfs has a link upper_NAME for each that lies directly over one.
std::vector<std::string> all_above(const fs::path& net, std::vector<std::string> pending) {
  constexpr std::string_view prefix = "upper_";
  std::set<std::string> found;
  while (!pending.empty()) {
    const std::string name = pending.back();
    pending.pop_back();
    for (const std::string& entry : names_in(net / name)) {
      if (!entry.starts_with(prefix)) continue;
      if (const std::string upper = entry.substr(prefix.size()); found.insert(upper).second) pending.push_back(upper);
    }
  }
  return {found.begin(), found.end()};
}

Traffic read_netdevs(const fs::path& root) { return parse_netdev_counters(read_text(root / "proc/net/dev")); }

std::vector<std::string> above_netdev(const fs::path& root, const std::string& name) {
  return all_above(root / "sys/class/net", {name});
}

/// The interfaces beside a port, and those above them: those of the same PCI function, and those that its table of GIDs
/// names (RoCE).
std::vector<std::string> above_rdma_port(const fs::path& root, const std::string& name) {
  const std::string device = name.substr(0, name.find('/'));
  const std::string port = name.substr(name.find('/') + 1);
  const fs::path net = root / "sys/class/net";
  const fs::path rdma = root / "sys/class/infiniband" / device;
  std::set<std::string> found;
  const bool is_alone = names_in(rdma / "ports").size() == 1;
  for (const std::string& netdev : names_in(net)) {
    std::error_code error;
    if (!fs::exists(net / netdev / "device/infiniband" / device, error)) continue;
    const auto position = read_count(net / netdev / "dev_port");  // from 0, ports from 1
    if (is_alone || (position && std::to_string(*position + 1) == port)) found.insert(netdev);
  }
  for (const std::string& index : names_in(rdma / "ports" / port / "gid_attrs/ndevs")) {
    const std::string netdev = read_word(rdma / "ports" / port / "gid_attrs/ndevs" / index);
    if (!netdev.empty()) found.insert(netdev);
  }
  std::vector<std::string> all(found.begin(), found.end());
  for (const std::string& upper : all_above(net, all)) found.insert(upper);
  return {found.begin(), found.end()};
}

/// Where the driver of a port counts its bytes. What it sent is the sum of some counters, and so is what it received.
struct PortBytes {
  std::vector<std::string_view> sent;
  std::vector<std::string_view> received;
  std::uint64_t bytes_of_count = 1;
};

/// The first that a port has. InfiniBand's count data octets divided by 4 (PortXmitData,
/// ABI/stable/sysfs-class-infiniband); in `counters_ext` older kernels have those of 64 bits. Then, of drivers without:
/// efa and bnxt_re, and irdma.
const std::vector<PortBytes>& places_of_bytes() {
  static const std::vector<PortBytes> places{
      {{"counters_ext/port_xmit_data_64"}, {"counters_ext/port_rcv_data_64"}, 4},
      {{"counters/port_xmit_data"}, {"counters/port_rcv_data"}, 4},
      {{"hw_counters/tx_bytes"}, {"hw_counters/rx_bytes"}},
      {{"hw_counters/ip4OutOctets", "hw_counters/ip6OutOctets"},
       {"hw_counters/ip4InOctets", "hw_counters/ip6InOctets"}},
  };
  return places;
}

/// The sum of counters; nothing where one of them is missing, or stands at the end of its 32 bits, where those of old
/// adapters stop counting.
std::optional<std::uint64_t> sum_of(const fs::path& port, const std::vector<std::string_view>& names) {
  constexpr std::uint64_t saturated = std::numeric_limits<std::uint32_t>::max();
  std::uint64_t sum = 0;
  for (const std::string_view name : names) {
    const auto count = read_count(port / name);
    if (!count || *count == saturated) return std::nullopt;
    sum += *count;
  }
  return sum;
}

InterfaceBytes bytes_of_port(const fs::path& port) {
  for (const PortBytes& place : places_of_bytes()) {
    std::error_code error;
    if (!fs::exists(port / place.sent.front(), error)) continue;
    const auto sent = sum_of(port, place.sent);
    const auto received = sum_of(port, place.received);
    return {.sent = sent.value_or(0) * place.bytes_of_count,
            .received = received.value_or(0) * place.bytes_of_count,
            .is_counted = sent && received};
  }
  return {.is_counted = false};
}

/// Ports of RDMA devices.
Traffic read_rdma_ports(const fs::path& root) {
  Traffic counters;
  for (const std::string& device : names_in(root / "sys/class/infiniband")) {
    const fs::path ports = root / "sys/class/infiniband" / device / "ports";
    for (const std::string& port : names_in(ports)) {
      counters[device + "/" + port] = bytes_of_port(ports / port);
    }
  }
  return counters;
}

// One line for each kind.
constexpr std::array kinds{read_netdevs, read_rdma_ports};

void subtract(InterfaceBytes& bytes, const InterfaceBytes& start) {
  bytes.is_counted =
      bytes.is_counted && start.is_counted && bytes.sent >= start.sent && bytes.received >= start.received;
  bytes.sent = bytes.is_counted ? bytes.sent - start.sent : 0;
  bytes.received = bytes.is_counted ? bytes.received - start.received : 0;
}

}  // namespace

Traffic parse_netdev_counters(std::string_view text) {
  Traffic counters;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(':');
    const std::size_t begin = line.find_first_not_of(' ');
    if (colon == std::string::npos || begin >= colon) continue;
    std::istringstream fields(line.substr(colon + 1));
    InterfaceBytes bytes;
    std::uint64_t skipped = 0;
    fields >> bytes.received;
    for (int i = 0; i < 7; ++i) fields >> skipped;  // packets, errors, drops, ... of the receiving side
    if (fields >> bytes.sent) counters[line.substr(begin, colon - begin)] = bytes;
  }
  return counters;
}

Traffic read_traffic_counters(const fs::path& root) {
  Traffic all;
  for (const auto& read : kinds) all.merge(read(root));
  return all;
}

Traffic traffic_between(const Traffic& before, const Traffic& after) {
  Traffic carried = after;
  for (auto& [name, bytes] : carried) {
    const auto found = before.find(name);
    if (found != before.end()) subtract(bytes, found->second);
  }
  return carried;
}

bool is_rdma_port(std::string_view name) { return name.find('/') != std::string_view::npos; }

const std::vector<std::string>& InterfacesAbove::of(const std::string& counter) {
  const auto [found, is_new] = known_.try_emplace(counter);
  if (is_new) found->second = is_rdma_port(counter) ? above_rdma_port(root_, counter) : above_netdev(root_, counter);
  return found->second;
}

void note_above(Traffic& carried, InterfacesAbove& above) {
  for (auto& [name, bytes] : carried) bytes.above = above.of(name);
}

void drop_idle(Traffic& carried, std::string_view kept) {
  std::erase_if(carried, [&](const auto& each) {
    const auto& [name, bytes] = each;
    return name != kept && bytes.is_counted && bytes.sent == 0 && bytes.received == 0;
  });
}

void add_traffic(Traffic& total, const Traffic& more) {
  for (const auto& [name, bytes] : more) {
    InterfaceBytes& sum = total[name];
    sum.sent += bytes.sent;
    sum.received += bytes.received;
    sum.above = bytes.above;
    sum.is_counted = sum.is_counted && bytes.is_counted;
  }
}

}  // namespace fabricbench

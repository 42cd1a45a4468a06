#include "rdma/port.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <set>
#include <utility>
#include <vector>

#include "base/failure.hpp"
#include "base/folder.hpp"

namespace fabricbench {
namespace {

namespace fs = std::filesystem;

std::string read_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::optional<int> number_in(const std::string& text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// One address of a port.
struct GidEntry {
  int index = 0;
  verbs::Gid gid{};
  std::string type;    // `RoCE v2`, `IB/RoCE v1`
  std::string netdev;  // empty on InfiniBand
};

/// A port as sysfs has it.
struct Found {
  std::string device;
  int number = 1;
  bool is_ethernet = false;
  bool is_iwarp = false;
  std::string state;
  std::vector<GidEntry> gids;
  std::set<std::string> netdevs;

  std::string name() const { return device + "/" + std::to_string(number); }
};

/// The network interface whose MAC address a port of iWARP has for its GID (soft iWARP is on no bus).
std::set<std::string> netdevs_of_mac(const fs::path& root, const verbs::Gid& gid) {
  std::string wanted;
  constexpr std::string_view digits = "0123456789abcdef";
  for (std::size_t i = 0; i < 6; ++i) {
    if (i > 0) wanted += ':';
    wanted += digits[gid[i] >> 4U];
    wanted += digits[gid[i] & 15U];
  }
  std::set<std::string> names;
  const fs::path net = root / "sys/class/net";
  for (const std::string& name : names_in(net)) {
    if (read_line(net / name / "address") == wanted) names.insert(name);
  }
  return names;
}

/// Network interfaces of the same function of the bus, which have no entry in the table of GIDs: those of InfiniBand
/// and iWARP.
std::set<std::string> netdevs_beside(const fs::path& root, const Found& port, bool is_alone) {
  std::set<std::string> names;
  const fs::path net = root / "sys/class/net";
  for (const std::string& name : names_in(net)) {
    std::error_code error;
    if (!fs::exists(net / name / "device/infiniband" / port.device, error)) continue;
    const auto position = number_in(read_line(net / name / "dev_port"));  // from 0, ports from 1
    if (is_alone || position == port.number - 1) names.insert(name);
  }
  return names;
}

/// What drives a device: the driver of its function of the bus. Devices in software are on none: soft RoCE tells its
/// network interface (`parent`), soft iWARP is the one kind of iWARP that tells nothing.
std::string driver_of(const fs::path& root, const std::string& device, bool is_iwarp) {
  const fs::path folder = root / "sys/class/infiniband" / device;
  std::error_code error;
  const fs::path driver = fs::read_symlink(folder / "device/driver", error);
  if (!error) return driver.filename().string();
  if (fs::exists(folder / "device", error)) return {};
  if (fs::exists(folder / "parent", error)) return "rxe";
  return is_iwarp ? "siw" : "";
}

Found read_port(const fs::path& root, const std::string& device, int number, bool is_alone) {
  const fs::path folder = root / "sys/class/infiniband" / device;
  const fs::path port = folder / "ports" / std::to_string(number);
  Found found;
  found.device = device;
  found.number = number;
  found.is_ethernet = read_line(port / "link_layer") == "Ethernet";
  found.is_iwarp = read_line(folder / "node_type").starts_with("4");
  found.state = read_line(port / "state");
  found.netdevs = netdevs_beside(root, found, is_alone);
  for (const std::string& name : names_in(port / "gids")) {
    const auto index = number_in(name);
    const auto gid = parse_gid(read_line(port / "gids" / name));
    if (!index || !gid || *gid == verbs::Gid{}) continue;
    GidEntry entry{.index = *index,
                   .gid = *gid,
                   .type = read_line(port / "gid_attrs/types" / name),
                   .netdev = read_line(port / "gid_attrs/ndevs" / name)};
    if (!entry.netdev.empty()) found.netdevs.insert(entry.netdev);
    if (found.is_iwarp) found.netdevs.merge(netdevs_of_mac(root, *gid));
    found.gids.push_back(std::move(entry));
  }
  std::ranges::sort(found.gids, {}, &GidEntry::index);
  return found;
}

/// The ports up to the first that is wanted, which is the last then: the addresses of each are a thousand files.
template <class IsWanted>
std::vector<Found> read_ports(const fs::path& root, IsWanted is_wanted) {
  std::vector<Found> all;
  for (const std::string& device : names_in(root / "sys/class/infiniband")) {
    const std::vector<std::string> ports = names_in(root / "sys/class/infiniband" / device / "ports");
    for (const std::string& port : ports) {
      const auto number = number_in(port);
      if (!number) continue;
      all.push_back(read_port(root, device, *number, ports.size() == 1));
      if (is_wanted(all.back())) return all;
    }
  }
  return all;
}

std::string described(const Found& port) {
  std::string over;
  for (const std::string& name : port.netdevs) over += (over.empty() ? " over " : " and ") + name;
  const char* const kind = port.is_iwarp ? "iWARP" : port.is_ethernet ? "RoCE" : "InfiniBand";
  return port.name() + " (" + kind + over + ")";
}

std::string described(const std::vector<Found>& ports) {
  std::string list;
  for (const Found& port : ports) list += (list.empty() ? "" : ", ") + described(port);
  return list.empty() ? "no port of any RDMA device" : list;
}

bool is_ipv4(const verbs::Gid& gid) {
  constexpr std::array<std::uint8_t, 12> prefix{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::equal(prefix.begin(), prefix.end(), gid.begin());
}

/// How well an address suits; the best is the highest.
int rank_of(const GidEntry& entry, const std::optional<Interface>& interface) {
  int rank = 0;
  if (entry.type == "RoCE v2") rank += 4;
  if (is_ipv4(entry.gid)) rank += 2;
  if (interface && interface->address && is_ipv4(entry.gid) && ipv4_of(entry.gid) == *interface->address) rank += 8;
  return rank;
}

Found choose_port(const fs::path& root, const RdmaEnd& wanted, const std::optional<Interface>& interface) {
  const auto is_wanted = [&](const Found& port) {
    if (wanted.port && *wanted.port != port.number) return false;
    if (wanted.device) return *wanted.device == port.device;
    return interface && port.netdevs.contains(interface->name);
  };
  std::vector<Found> ports = read_ports(root, is_wanted);
  if (!ports.empty() && is_wanted(ports.back())) return std::move(ports.back());
  const std::string there = "this host has " + described(ports);
  const std::string port = wanted.port ? " with port " + std::to_string(*wanted.port) : "";
  if (wanted.device) {
    throw Failure(FailureCode::unreachable,
                  "there is no RDMA device " + *wanted.device + port + ", which the testbed names: " + there);
  }
  if (!interface) {
    throw Failure(
        FailureCode::unreachable,
        "this host has no interface in the fabric by which its RDMA device could be found: check its name and "
        "subnet in the testbed, or name the device there (rdma.device); " +
            there);
  }
  throw Failure(FailureCode::unreachable, "no RDMA device" + port + " belongs to interface " + interface->name + ": " +
                                              there +
                                              "; name one in the testbed (rdma.device), or make one by `rdma "
                                              "link add rxe0 type rxe netdev " +
                                              interface->name + "`");
}

const GidEntry& choose_gid(const Found& port, const RdmaEnd& wanted, const std::optional<Interface>& interface) {
  constexpr int last_index = 255;  // an address of a queue pair has 8 bits for it (ibv_global_route)
  if (wanted.gid_index && *wanted.gid_index > last_index) {
    throw Failure(FailureCode::unsupported, "libibverbs takes addresses (GIDs) 0 to " + std::to_string(last_index) +
                                                ", and the testbed names " + std::to_string(*wanted.gid_index) +
                                                " (rdma.gid_index)");
  }
  const GidEntry* best = nullptr;
  std::string there;
  for (const GidEntry& entry : port.gids) {
    there += (there.empty() ? "" : ", ") + std::to_string(entry.index);
    if (wanted.gid_index) {
      if (entry.index == *wanted.gid_index) return entry;
      continue;
    }
    const bool is_elsewhere = interface && !entry.netdev.empty() && entry.netdev != interface->name;
    if (is_elsewhere && !wanted.device) continue;
    if (best == nullptr || rank_of(entry, interface) > rank_of(*best, interface)) best = &entry;
  }
  if (best != nullptr) return *best;
  const std::string index = wanted.gid_index ? " " + std::to_string(*wanted.gid_index) : "";
  throw Failure(FailureCode::unreachable, "port " + port.name() + " has no address (GID)" + index + "; it has " +
                                              (there.empty() ? "none: give its interface an IP address" : there));
}

}  // namespace

RdmaTransport RdmaPort::transport() const {
  if (is_iwarp) return RdmaTransport::iwarp;
  if (!is_ethernet) return RdmaTransport::infiniband;
  return roce_version == 2 ? RdmaTransport::roce_v2 : RdmaTransport::roce_v1;
}

std::string port_identity(const RdmaPort& port, const fs::path& root) {
  const fs::path folder = root / "sys/class/infiniband" / port.device / "ports" / std::to_string(port.number);
  return "GID " + std::to_string(port.gid_index) + " " + read_line(folder / "gids" / std::to_string(port.gid_index)) +
         ", LID " + read_line(folder / "lid") + ", P_Key " + read_line(folder / "pkeys/0");
}

std::optional<verbs::Gid> parse_gid(const std::string& text) {
  constexpr std::size_t groups = 8;
  constexpr std::size_t group_letters = 4;
  if (text.size() != groups * (group_letters + 1) - 1) return std::nullopt;
  verbs::Gid gid{};
  for (std::size_t i = 0; i < groups; ++i) {
    const char* const begin = text.data() + i * (group_letters + 1);
    std::uint16_t group = 0;
    const auto [end, error] = std::from_chars(begin, begin + group_letters, group, 16);
    if (error != std::errc() || end != begin + group_letters) return std::nullopt;
    gid[2 * i] = static_cast<std::uint8_t>(group >> 8U);
    gid[2 * i + 1] = static_cast<std::uint8_t>(group & 0xffU);
  }
  return gid;
}

std::string gid_text(const verbs::Gid& gid) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < gid.size(); ++i) {
    if (i > 0 && i % 2 == 0) text += ':';
    text += digits[gid[i] >> 4U];
    text += digits[gid[i] & 15U];
  }
  return text;
}

verbs::Gid gid_of_ipv4(std::uint32_t address) {
  verbs::Gid gid{};
  gid[10] = gid[11] = 0xff;
  for (unsigned i = 0; i < 4; ++i) gid[12 + i] = static_cast<std::uint8_t>(address >> (24U - 8U * i));
  return gid;
}

std::uint32_t ipv4_of(const verbs::Gid& gid) {
  return std::uint32_t{gid[12]} << 24U | std::uint32_t{gid[13]} << 16U | std::uint32_t{gid[14]} << 8U | gid[15];
}

RdmaPort find_rdma_port(const RdmaEnd& wanted, const std::optional<Interface>& interface, const fs::path& root) {
  const Found port = choose_port(root, wanted, interface);
  if (!port.state.empty() && !port.state.starts_with("4")) {
    throw Failure(FailureCode::unreachable, "port " + port.name() + " is not active (" + port.state +
                                                "): check its link, and its subnet manager");
  }
  RdmaPort chosen{
      .device = port.device, .number = port.number, .is_ethernet = port.is_ethernet, .is_iwarp = port.is_iwarp};
  const GidEntry& gid = choose_gid(port, wanted, interface);
  chosen.gid_index = gid.index;
  chosen.gid = gid.gid;
  if (port.is_ethernet && !port.is_iwarp) chosen.roce_version = gid.type == "RoCE v2" ? 2 : 1;
  chosen.driver = driver_of(root, port.device, port.is_iwarp);
  chosen.netdev = gid.netdev;
  if (chosen.netdev.empty() && !port.netdevs.empty()) chosen.netdev = *port.netdevs.begin();
  return chosen;
}

}  // namespace fabricbench

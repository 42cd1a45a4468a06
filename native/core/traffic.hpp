// What this host's counters of traffic have counted: they prove which way the traffic of a cell went. A kind of fabric
// that counts elsewhere than the kernel's network interfaces is one function and one line in traffic.cpp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fabricbench {

/// What one counter has counted, in bytes.
struct InterfaceBytes {
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
  /// The network interfaces above it, whose traffic it counts as well: a bond or VLAN over a card, that of an RDMA
  /// port. Told of what was counted in a span of time.
  std::vector<std::string> above{};
  /// Not where a device carries traffic that nobody can count: that traffic has gone nowhere else is then not known.
  bool is_counted = true;
};

/// By the name of the counter: of a network interface `ib0`, of the port of an RDMA device `mlx5_0/1`.
using Traffic = std::map<std::string, InterfaceBytes>;

/// By the name of the host.
using HostTraffic = std::map<std::string, Traffic>;

/// Read all counters of this network namespace, each since it came up. Reads files: never within a timed section.
/// @param root of the file system, another one in tests
Traffic read_traffic_counters(const std::filesystem::path& root = "/");

/// What was counted between two readings; what was not there before began at 0. A counter that was reset meanwhile, or
/// has wrapped, has counted nothing that can be told.
Traffic traffic_between(const Traffic& before, const Traffic& after);

/// Whether a counter is that of a port of an RDMA device.
bool is_rdma_port(std::string_view name);

/// The network interfaces above the counters of this host: those whose traffic they count as well. What lies above one
/// is looked up once and kept: a port's table of addresses alone is a thousand files.
class InterfacesAbove {
 public:
  /// @param root of the file system, another one in tests
  explicit InterfacesAbove(std::filesystem::path root = "/") : root_(std::move(root)) {}

  const std::vector<std::string>& of(const std::string& counter);

 private:
  std::filesystem::path root_;
  std::map<std::string, std::vector<std::string>> known_;
};

/// Note what lies above each counter of this host.
void note_above(Traffic& carried, InterfacesAbove& above);

/// Leave out the counters that counted nothing, but for that of one interface: a cell of many hosts has one such list
/// for each of them.
void drop_idle(Traffic& carried, std::string_view kept);

/// Add what was counted in another span of time.
void add_traffic(Traffic& total, const Traffic& more);

/// Parse the text of /proc/net/dev (proc_pid_net(5)).
Traffic parse_netdev_counters(std::string_view text);

/// As records have it; what is usual is left out.
template <class Json>
void to_json(Json& value, const InterfaceBytes& bytes) {
  value = Json{{"sent", bytes.sent}, {"received", bytes.received}};
  if (!bytes.above.empty()) value["above"] = bytes.above;
  if (!bytes.is_counted) value["is_counted"] = false;
}

template <class Json>
void from_json(const Json& value, InterfaceBytes& bytes) {
  value.at("sent").get_to(bytes.sent);
  value.at("received").get_to(bytes.received);
  if (value.contains("above")) value.at("above").get_to(bytes.above);
  bytes.is_counted = value.value("is_counted", true);
}

}  // namespace fabricbench

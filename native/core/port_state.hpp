// How the ports of the fabric under test fare on this host beside the bytes that they carry (core/traffic.hpp): what
// they sent again, dropped, paused and were told of congestion. Read before and after a cell, never within a timed
// section. Which counter means what is Python's to say (src/fabricbench/record/port_counters.py); here they keep the
// names that the kernel and the driver give them.
//
// Read are the files of a port in /sys/class/infiniband (ABI/stable/sysfs-class-infiniband) and, of the network
// interfaces beside it, the driver's statistics that tell of pauses, priorities, congestion, drops and errors (`ethtool
// -S`). A driver may renew its counters only every 10 ms (`hw_counters/lifespan`): what happens to a cell that is over
// sooner may count for the next one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/interface.hpp"
#include "core/plan.hpp"
#include "core/traffic.hpp"

namespace fabricbench {

/// By the name of the counter.
using PortCounters = std::map<std::string, std::uint64_t>;

/// By the name of a port, `mlx5_0/1`, or of a network interface. One whose counters cannot be read is not there.
using PortState = std::map<std::string, PortCounters>;

/// By the name of the host.
using PortStates = std::map<std::string, PortState>;

/// The ports of the fabric on this host, and the network interfaces beside them.
struct FabricPorts {
  std::vector<std::string> ports;
  std::vector<std::string> interfaces;
};

/// Find the ports beside the interface, or the one that is named; without RDMA the interface alone. A fabric without
/// either has no state to read.
/// @param root of the file system, another one in tests
FabricPorts find_ports(const std::optional<Interface>& interface, const RdmaEnd& named, InterfacesAbove& above,
                       const std::filesystem::path& root = "/");

/// Read the counters of these ports as they stand now. Throws nothing for what cannot be read.
PortState read_port_state(const FabricPorts& of, const std::filesystem::path& root = "/");

/// What changed between two readings; a port of which nothing did is there without counters. A counter that went back
/// was reset, and is left out.
PortState changes_between(const PortState& before, const PortState& after);

/// What the driver of an interface counts, by name (`ethtool -S`); nothing where it has no statistics.
PortCounters read_driver_statistics(const std::string& interface);

/// Whether a driver's statistic tells how its link fares, and not what each of its queues did.
bool is_of_link(std::string_view statistic);

}  // namespace fabricbench

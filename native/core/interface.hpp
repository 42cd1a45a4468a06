// The network interfaces of this host: the one that leads into the fabric under test, and what each has carried.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace fabricbench {

/// An IPv4 network, both numbers in host byte order.
struct Subnet {
  std::uint32_t network = 0;
  std::uint32_t mask = 0;
};

/// Read `10.98.1.0/24`; nothing if it is not an IPv4 network. Host bits are dropped.
std::optional<Subnet> parse_subnet(std::string_view text);

using MacAddress = std::array<std::uint8_t, 6>;

struct Interface {
  std::string name;
  int index = 0;
  std::optional<std::uint32_t> address;  // host byte order
  MacAddress mac{};
  int mtu = 0;
};

/// `10.98.1.1` for an address in host byte order.
std::string address_text(std::uint32_t address);
std::string mac_text(const MacAddress& mac);

/// Find the interface with this name, or the one with an address in this subnet; nothing where there is none.
/// With both, the name decides and the address is the one in the subnet.
std::optional<Interface> find_interface(const std::optional<std::string>& name, const std::optional<Subnet>& subnet);

struct InterfaceBytes {
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
};

/// What has gone through a place that counts bytes, by the place's name: a network interface, a port of an adapter.
using Traffic = std::map<std::string, InterfaceBytes>;

/// Read what each interface of this network namespace has carried since it came up.
Traffic read_interface_counters();
/// The same from the text of /proc/net/dev.
Traffic parse_interface_counters(std::string_view text);
/// What went through between two readings; what was not there before began at 0.
Traffic traffic_between(const Traffic& before, const Traffic& after);

}  // namespace fabricbench

// The network interfaces of this host, and which of them leads into the fabric under test.
#pragma once

#include <netinet/in.h>

#include <array>
#include <cstdint>
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
  std::optional<in6_addr> address_6;     // one that is known beyond its link, else that of the link
  MacAddress mac{};
  int mtu = 0;
};

/// `10.98.1.1` for an address in host byte order.
std::string address_text(std::uint32_t address);
std::string mac_text(const MacAddress& mac);
/// Throws a Failure on anything but what mac_text() makes.
MacAddress parse_mac(std::string_view text);

/// Find the interface with this name, or the one with an address in this subnet; nothing where there is none.
/// With both, the name decides and the address is the one in the subnet.
std::optional<Interface> find_interface(const std::optional<std::string>& name, const std::optional<Subnet>& subnet);

}  // namespace fabricbench

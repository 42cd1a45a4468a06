#include "base/interface.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netpacket/packet.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <memory>

#include "base/failure.hpp"

namespace fabricbench {
namespace {

struct FreeAddresses {
  void operator()(ifaddrs* list) const { freeifaddrs(list); }
};
using AddressList = std::unique_ptr<ifaddrs, FreeAddresses>;

AddressList read_addresses() {
  ifaddrs* list = nullptr;
  return AddressList(getifaddrs(&list) == 0 ? list : nullptr);
}

bool is_family(const ifaddrs& entry, int family) {
  return entry.ifa_addr != nullptr && entry.ifa_addr->sa_family == family;
}

/// The device that an entry is of: an address may have a label, `eth0:1`, which getifaddrs gives in place of the name.
/// No device has a colon in its name.
std::string device_of(const ifaddrs& entry) {
  const std::string_view name = entry.ifa_name;
  return std::string(name.substr(0, name.find(':')));
}

std::uint32_t address_of(const ifaddrs& entry) {
  sockaddr_in address{};
  std::memcpy(&address, entry.ifa_addr, sizeof address);
  return ntohl(address.sin_addr.s_addr);
}

/// The address that counts: of the named interface if there is a name, in the subnet if there is a subnet.
const ifaddrs* choose_address(const ifaddrs* list, const std::optional<std::string>& name,
                              const std::optional<Subnet>& subnet) {
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (!is_family(*entry, AF_INET) || (name && *name != device_of(*entry))) continue;
    if (!subnet || (address_of(*entry) & subnet->mask) == subnet->network) return entry;
  }
  return nullptr;
}

/// An interface's IPv6 address: the first that is known beyond its link, else the first of all.
std::optional<in6_addr> address_6_of(const ifaddrs* list, const std::string& name) {
  std::optional<in6_addr> found;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (!is_family(*entry, AF_INET6) || name != device_of(*entry)) continue;
    sockaddr_in6 address{};
    std::memcpy(&address, entry->ifa_addr, sizeof address);
    if (!IN6_IS_ADDR_LINKLOCAL(&address.sin6_addr)) return address.sin6_addr;
    if (!found) found = address.sin6_addr;
  }
  return found;
}

MacAddress read_mac(const ifaddrs* list, const std::string& name) {
  MacAddress mac{};
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (!is_family(*entry, AF_PACKET) || name != entry->ifa_name) continue;
    sockaddr_ll address{};
    std::memcpy(&address, entry->ifa_addr, sizeof address);
    std::copy_n(address.sll_addr, mac.size(), mac.begin());
  }
  return mac;
}

int read_mtu(const std::string& name) {
  const int descriptor = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return 0;
  ifreq request{};
  name.copy(request.ifr_name, IFNAMSIZ - 1);
  const int mtu = ioctl(descriptor, SIOCGIFMTU, &request) == 0 ? request.ifr_mtu : 0;
  close(descriptor);
  return mtu;
}

}  // namespace

std::optional<Subnet> parse_subnet(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  in_addr address{};
  unsigned prefix = 0;
  const std::string_view digits = text.substr(slash + 1);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), prefix);
  if (inet_pton(AF_INET, std::string(text.substr(0, slash)).c_str(), &address) != 1) return std::nullopt;
  if (error != std::errc() || end != digits.data() + digits.size() || prefix > 32) return std::nullopt;
  const std::uint32_t mask = prefix == 0 ? 0 : ~std::uint32_t{0} << (32 - prefix);
  return Subnet{ntohl(address.s_addr) & mask, mask};
}

std::string address_text(std::uint32_t address) {
  const in_addr network{htonl(address)};
  std::array<char, INET_ADDRSTRLEN> text{};
  inet_ntop(AF_INET, &network, text.data(), text.size());
  return text.data();
}

std::string mac_text(const MacAddress& mac) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : mac) {
    if (!text.empty()) text += ':';
    text += digits[byte >> 4U];
    text += digits[byte & 15U];
  }
  return text;
}

MacAddress parse_mac(std::string_view text) {
  MacAddress mac{};
  constexpr std::size_t characters_per_byte = 3;
  if (text.size() + 1 != mac.size() * characters_per_byte) {
    throw Failure(FailureCode::error, "the peer told a MAC address that is none: '" + std::string(text) + "'");
  }
  for (std::size_t i = 0; i < mac.size(); ++i) {
    const char* digits = text.data() + i * characters_per_byte;
    std::from_chars(digits, digits + 2, mac[i], 16);
  }
  return mac;
}

std::optional<Interface> find_interface(const std::optional<std::string>& name, const std::optional<Subnet>& subnet) {
  if (!name && !subnet) return std::nullopt;
  const AddressList list = read_addresses();
  const ifaddrs* chosen = choose_address(list.get(), name, subnet);
  if (chosen == nullptr && !name) return std::nullopt;
  Interface found;
  found.name = chosen != nullptr ? device_of(*chosen) : *name;
  found.index = static_cast<int>(if_nametoindex(found.name.c_str()));
  if (found.index == 0) return std::nullopt;
  if (chosen != nullptr) found.address = address_of(*chosen);
  found.address_6 = address_6_of(list.get(), found.name);
  found.mac = read_mac(list.get(), found.name);
  found.mtu = read_mtu(found.name);
  return found;
}

}  // namespace fabricbench

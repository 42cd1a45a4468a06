#include "core/failure.hpp"
#include "transport/transport.hpp"

namespace fabricbench {

const Interface& needed_interface(const Site& site) {
  if (!site.interface) {
    throw Failure(
        FailureCode::unreachable,
        "this host has no interface in the fabric: check its name and subnet in the testbed, and `ip address`");
  }
  return *site.interface;
}

std::uint32_t needed_address(const Site& site) {
  const Interface& interface = needed_interface(site);
  if (!interface.address) {
    throw Failure(FailureCode::unreachable,
                  "interface " + interface.name + " has no IPv4 address in the fabric's subnet: give it one");
  }
  return *interface.address;
}

}  // namespace fabricbench

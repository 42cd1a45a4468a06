#include "transport/device.hpp"

#include "base/failure.hpp"

namespace fabricbench {

const Interface& needed_interface(const Attachment& attachment) {
  if (!attachment.interface) {
    throw Failure(
        FailureCode::unreachable,
        "this host has no interface in the fabric: check its name and subnet in the testbed, and `ip address`");
  }
  return *attachment.interface;
}

std::uint32_t needed_address(const Attachment& attachment) {
  const Interface& interface = needed_interface(attachment);
  if (!interface.address) {
    throw Failure(FailureCode::unreachable,
                  "interface " + interface.name + " has no IPv4 address in the fabric's subnet: give it one");
  }
  return *interface.address;
}

}  // namespace fabricbench

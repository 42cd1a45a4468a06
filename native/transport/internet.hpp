// The two versions of IP, under the layers ip, udp and tcp: a cell asks for one by `address_family`.
#pragma once

#include <netinet/in.h>

#include <cstdint>

#include "base/socket.hpp"
#include "core/parameters.hpp"
#include "transport/device.hpp"
#include "transport/staged.hpp"

namespace fabricbench {

using words::AddressFamily;

/// Of sockets: AF_INET or AF_INET6.
constexpr int domain_of(AddressFamily family) { return family == AddressFamily::ipv4 ? AF_INET : AF_INET6; }

/// Without options.
constexpr std::size_t ip_header_bytes_of(AddressFamily family) { return family == AddressFamily::ipv4 ? 20 : 40; }

/// Which interface an address is of that every link has: what a peer tells of its own scope means nothing here.
inline std::uint32_t scope_of(const Attachment& attachment) {
  return static_cast<std::uint32_t>(needed_interface(attachment).index);
}

/// The IPv4 address of the interface into the fabric, the one in its subnet, or its IPv6 address, without a port; or
/// the Failure that says what is missing.
inline SocketAddress needed_address(const Attachment& attachment, AddressFamily family) {
  if (family == AddressFamily::ipv4) return SocketAddress(socket_address(needed_address(attachment), 0));
  const Interface& interface = needed_interface(attachment);
  if (!interface.address_6) {
    throw Failure(FailureCode::unreachable,
                  "interface " + interface.name + " has no IPv6 address: give it one, or leave address_family out");
  }
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = *interface.address_6;
  if (IN6_IS_ADDR_LINKLOCAL(&address.sin6_addr)) address.sin6_scope_id = scope_of(attachment);
  return SocketAddress(address);
}

/// Makes send() tell when the interface's queue was full (ENOBUFS); else the kernel would drop the message and say
/// nothing.
inline void tell_of_full_queues(const Descriptor& socket, AddressFamily family) {
  if (family == AddressFamily::ipv4) {
    set_option(socket, IPPROTO_IP, IP_RECVERR, 1, "IP_RECVERR");
  } else {
    set_option(socket, IPPROTO_IPV6, IPV6_RECVERR, 1, "IPV6_RECVERR");
  }
}

/// Time to live of packets whose stages are measured: another value than the usual 64, in no network's way.
inline constexpr int staged_time_to_live = 77;

/// What paths over IP are stamped by (transport/staged.hpp).
struct InternetStamps {
  static constexpr std::uint32_t first_number = 1;  // as on any path
  static bool is_origin(const cmsghdr& told) {
    return (told.cmsg_level == IPPROTO_IP && told.cmsg_type == IP_RECVERR) ||
           (told.cmsg_level == IPPROTO_IPV6 && told.cmsg_type == IPV6_RECVERR);
  }
  /// Not on IPv6, whose frames the lab's switch keeps no row of.
  static void mark(int socket) {
    setsockopt(socket, IPPROTO_IP, IP_TTL, &staged_time_to_live, sizeof staged_time_to_live);
  }
};

/// A device of sockets over the version of IP that a cell asks for.
template <template <Receive> class PathOf>
class InternetDevice : public SocketDevice<PathOf> {
 public:
  using SocketDevice<PathOf>::SocketDevice;
  template <Receive way>
  PathOf<way> open(const Site& site, const PlanProbe& probe) const {
    return PathOf<way>(this->attachment(), site, word_parameter<AddressFamily>(probe, "address_family"));
  }
  /// The same of one that notes stages (transport/staged.hpp), for layers that have them.
  template <Receive way>
  Staged<PathOf<way>, way> open_staged(const Site& site, const PlanProbe& probe) const {
    return Staged<PathOf<way>, way>(this->attachment(), site, word_parameter<AddressFamily>(probe, "address_family"));
  }
};

}  // namespace fabricbench

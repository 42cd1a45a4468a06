#include "switch/socket.hpp"

#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>

#include "switch/failure.hpp"

namespace fabricbench::emulated_switch {

PacketSocket::PacketSocket() : fd_(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0)) {
  if (fd_ < 0) throw EnvironmentLacks::from_errno("cannot open a packet socket");
}

PacketSocket::PacketSocket(PacketSocket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

PacketSocket::~PacketSocket() {
  if (fd_ >= 0) close(fd_);
}

void PacketSocket::bind_to(const std::string& interface, int protocol) {
  const unsigned index = if_nametoindex(interface.c_str());
  if (index == 0) throw EnvironmentLacks("there is no interface " + interface + " in this network namespace");
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(static_cast<std::uint16_t>(protocol));
  address.sll_ifindex = static_cast<int>(index);
  // The kernel takes a sockaddr of any family by this one type.
  if (bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    throw EnvironmentLacks::from_errno("cannot bind a packet socket to " + interface);
  }
}

void PacketSocket::set_raw(int level, int option, const void* value, unsigned size, const char* what) {
  if (setsockopt(fd_, level, option, value, size) != 0) {
    throw EnvironmentLacks::from_errno(std::string("cannot set ") + what);
  }
}

}  // namespace fabricbench::emulated_switch

#include "transport/udp.hpp"

namespace fabricbench {

UdpSocket::UdpSocket(const Attachment& attachment)
    : own_address_(needed_address(attachment)), socket_(open_socket(AF_INET, SOCK_DGRAM, 0, "SOCK_DGRAM")) {
  bind_to(socket_, socket_address(own_address_, 0));
  enlarge_receive_buffer(socket_);
  // Makes send() tell when the interface's queue was full (ENOBUFS); else the kernel would drop the message and say
  // nothing.
  set_option(socket_, IPPROTO_IP, IP_RECVERR, 1, "IP_RECVERR");
}

std::string UdpSocket::address() const { return endpoint_text(own_address_, bound_port(socket_)); }

void UdpSocket::meet(std::string_view peer) {
  peer_ = parse_endpoint(peer);
  drain(socket_);  // what strangers sent so far
}

}  // namespace fabricbench

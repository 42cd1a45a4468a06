#include "transport/ip.hpp"

namespace fabricbench {
namespace {

// Use for experimentation and testing, RFC 3692: from the first end to the second, and back.
constexpr int protocol_forth = 253;
constexpr int protocol_back = 254;

constexpr std::uint32_t ip_header_bytes = 20;  // without options

Descriptor open_raw(int protocol) { return open_socket(AF_INET, SOCK_RAW, protocol, "SOCK_RAW"); }

}  // namespace

IpSockets::IpSockets(const Attachment& attachment, const Site& site)
    : own_address_(needed_address(attachment)),
      out_(open_raw(site.is_first ? protocol_forth : protocol_back)),
      in_(open_raw(site.is_first ? protocol_back : protocol_forth)) {
  admit_nothing(out_);
  bind_to(out_, socket_address(own_address_, 0));
  // Makes send() tell when the interface's queue was full (ENOBUFS); else the kernel would drop the packet and say
  // nothing.
  set_option(out_, IPPROTO_IP, IP_RECVERR, 1, "IP_RECVERR");
  enlarge_receive_buffer(in_);
  // Every raw socket of this protocol on a host sees what any rank there is sent by that peer: without the filter the
  // paths of a pattern of many ranks would fill each other's buffers.
  admit_only_token(in_, site.token, ip_header_bytes);
  bind_to(in_, socket_address(own_address_, 0));
}

std::string IpSockets::address() const { return endpoint_text(own_address_, 0); }

void IpSockets::meet(std::string_view peer) {
  const sockaddr_in address = parse_endpoint(peer);
  connect_to(out_, address);
  connect_to(in_, address);
  drain(in_);  // what strangers sent before the kernel knew the peer
}

}  // namespace fabricbench

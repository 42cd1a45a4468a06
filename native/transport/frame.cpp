#include "transport/frame.hpp"

#include <net/ethernet.h>

#include <charconv>
#include <cstring>

#ifndef PACKET_IGNORE_OUTGOING
#define PACKET_IGNORE_OUTGOING 23
#endif

namespace fabricbench {
namespace {

// IEEE 802, local experimental EtherTypes 1 and 2: from the first end to the second, and back.
constexpr std::uint16_t type_forth = 0x88b5;
constexpr std::uint16_t type_back = 0x88b6;

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

}  // namespace

// Opened without a protocol, a packet socket receives nothing until it is bound to one.
FrameSocket::FrameSocket(const Attachment& attachment, const Site& site)
    : interface_(needed_interface(attachment)), socket_(open_socket(AF_PACKET, SOCK_DGRAM, 0, "AF_PACKET")) {
  set_option(socket_, SOL_PACKET, PACKET_IGNORE_OUTGOING, 1, "PACKET_IGNORE_OUTGOING");
  enlarge_receive_buffer(socket_);
  admit_only_token(socket_, site.token);
  sockaddr_ll own{};
  own.sll_family = AF_PACKET;
  own.sll_protocol = htons(site.is_first ? type_back : type_forth);
  own.sll_ifindex = interface_.index;
  if (bind(socket_.get(), reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0) {
    fail_with_errno("bind(AF_PACKET, " + interface_.name + ")");
  }
  peer_ = own;
  peer_.sll_protocol = htons(site.is_first ? type_forth : type_back);
}

std::string FrameSocket::address() const { return mac_text(interface_.mac); }

void FrameSocket::meet(std::string_view peer) {
  const MacAddress mac = parse_mac(peer);
  peer_.sll_halen = static_cast<unsigned char>(mac.size());
  std::memcpy(peer_.sll_addr, mac.data(), mac.size());
}

}  // namespace fabricbench

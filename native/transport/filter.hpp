// Packet filters (classic BPF) that let the kernel drop foreign packets before they are queued.
#pragma once

#include <cstdint>

#include "core/descriptor.hpp"

namespace fabricbench {

/// Where the payload of a packet begins, as the filter of a socket sees it.
enum class PayloadStart { at_once, after_ip_header };

/// Let only packets through whose payload begins with the token. What came before is dropped.
void admit_only_token(const Descriptor& socket, PayloadStart start, std::uint32_t token);

/// Let nothing through: for sockets that only send.
void admit_nothing(const Descriptor& socket);

}  // namespace fabricbench

// Packet filters (classic BPF) that let the kernel drop foreign packets before they are queued.
#pragma once

#include <cstdint>

#include "core/descriptor.hpp"

namespace fabricbench {

/// Let only frames through whose payload begins with the token. What came before is dropped.
void admit_only_token(const Descriptor& socket, std::uint32_t token);

/// Let nothing through: for sockets that only send.
void admit_nothing(const Descriptor& socket);

}  // namespace fabricbench

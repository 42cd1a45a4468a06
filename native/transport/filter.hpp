// Packet filters (classic BPF) that let the kernel drop foreign packets before they are queued.
#pragma once

#include <cstdint>

#include "core/descriptor.hpp"

namespace fabricbench {

/// Let only packets through that have the token at `offset`, which counts from where the socket's user sees the packet
/// begin. What came before is dropped.
void admit_only_token(const Descriptor& socket, std::uint32_t token, std::uint32_t offset = 0);

/// Let nothing through: for sockets that only send.
void admit_nothing(const Descriptor& socket);

}  // namespace fabricbench

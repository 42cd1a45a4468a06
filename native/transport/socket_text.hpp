// Socket addresses as text, for the exchange over the control plane: `10.98.1.2:40123`.
#pragma once

#include <netinet/in.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace fabricbench {

std::string endpoint_text(std::uint32_t address, std::uint16_t port);
/// Throws a Failure on anything but what endpoint_text() makes.
sockaddr_in parse_endpoint(std::string_view text);

}  // namespace fabricbench

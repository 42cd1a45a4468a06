// What a cell may tell layer rdma, whatever its pattern is.
#pragma once

#include <cstddef>

namespace fabricbench {

struct RdmaParameters {
  std::size_t depth = 64;         // messages of a path under way at once
  std::size_t moderation = 16;    // of what send() is given, every so many ask for a completion
  std::size_t inline_bytes = 64;  // messages up to this are copied into their request, where the adapter can
  std::size_t mtu = 4096;         // of a path, at most
  unsigned traffic_class = 0;
  unsigned service_level = 0;
  unsigned timeout = 14;  // of an acknowledgement: 4.096 us times 2 to this power, 67 ms
  unsigned retry_count = 6;

  friend bool operator==(const RdmaParameters&, const RdmaParameters&) = default;
};

}  // namespace fabricbench

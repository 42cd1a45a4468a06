// What the forwarding thread shows to the others while it runs.
#pragma once

#include <atomic>
#include <vector>

#include "switch/counters.hpp"
#include "switch/lateness.hpp"

namespace fabricbench::emulated_switch {

struct Board {
  explicit Board(std::size_t port_count) : ports(port_count) {}

  std::vector<PortCounters> ports;
  /// How much later than computed frames left.
  Lateness lateness;
  std::atomic<bool> is_busy = false;
};

}  // namespace fabricbench::emulated_switch

// What the forwarding thread shows to the others while it runs.
#pragma once

#include <atomic>
#include <vector>

#include "switch/counters.hpp"
#include "switch/lateness.hpp"
#include "switch/lateness_series.hpp"

namespace fabricbench::emulated_switch {

struct Board {
  explicit Board(std::size_t port_count) : ports(port_count) {}

  std::vector<PortCounters> ports;
  /// How much later than computed frames left: since the start, and window by window.
  Lateness lateness;
  LatenessSeries lateness_series;
  std::atomic<bool> is_busy = false;
};

}  // namespace fabricbench::emulated_switch

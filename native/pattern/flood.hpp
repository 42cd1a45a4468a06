// Patterns in which all channels carry as much as they can for a while: bistream, star, ring, chaos, incast, outcast,
// bisection, message-rate. A sample is a window of time; its bytes are what arrived on this rank meanwhile, and the
// windows of all ranks are added up to those of the cell. A congestor floods likewise, without samples, until it is
// told to end.
#pragma once

#include <span>

#include "pattern/flood_polled.hpp"
#include "pattern/flood_posted.hpp"

namespace fabricbench {

/// Over the links of this rank, at least one; their paths come from one device.
template <Transport T>
Outcome flood(std::span<LinkOver<T>> links, Task& task) {
  for (LinkOver<T>& link : links) link.path->set_bound(task.probe.reply_timeout_seconds);
  if constexpr (PoolingTransport<T>) {
    PostedFlood<T>(links, task).run();
  } else {
    PolledFlood<T>(links, task).run();
  }
  return flood_outcome(task);
}

}  // namespace fabricbench

// When a message passed the boundaries between its stages, as one rank sees them without any right: its own stamps
// around the calls, the kernel's (SO_TIMESTAMPING), and when the thread was switched in. All are of CLOCK_REALTIME of
// the rank's host, which the kernel stamps with, so that stages are differences of one clock. What a stage is, Python
// decides (src/fabricbench/analysis/stages.py).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/processor_use.hpp"

namespace fabricbench {

/// One round trip on one rank: of the message that it sent and the one that it received; of several at once the last.
/// Nanoseconds; 0 is a boundary that was not seen. On the leader the message that is sent comes first, on the follower
/// the one that is received.
struct StageStamps {
  std::int64_t number = 0;  // of the round trip, the same on both ranks
  std::int64_t before = 0;  // the application calls the layer to send, of several messages at once the first
  std::int64_t asked = 0;   // a library of messages calls the kernel first, where the peer must answer before it sends
  std::int64_t called = 0;  // it calls the kernel to send the message itself
  std::int64_t scheduled =
      0;  // the frame enters the queueing discipline: of several the last, of IP fragments the first
  std::int64_t departed = 0;      // the driver is given it; of several as before
  std::int64_t acknowledged = 0;  // by the peer, of TCP: the first acknowledgement since `before`
  std::int64_t arrived = 0;       // the last frame of the other message comes up from the driver
  std::int64_t resumed = 0;       // the thread is switched in for the last time before it has the message
  std::int64_t waited = 0;        // for how long it was runnable since the last round trip and had no processor
  std::int64_t drained = 0;       // such a library has the message's last byte from the kernel
  std::int64_t received = 0;      // the application has the message
  std::int64_t round_trip = 0;    // the sample itself, on the leader
};

/// What one rank saw of a cell's messages. `refused` has the boundaries that its host does not let it see, and why;
/// `busiest` is the other process that used its processors most meanwhile.
struct StageReport {
  int rank = 0;  // of the launch
  bool leads = false;
  std::map<std::string, std::string> refused;
  std::optional<ProcessorUse> busiest{};
  std::vector<StageStamps> messages;
};

}  // namespace fabricbench

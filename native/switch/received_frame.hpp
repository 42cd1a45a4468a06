// A frame as a ring hands it over.
#pragma once

#include <cstdint>

namespace fabricbench::emulated_switch {

struct ReceivedFrame {
  std::uint32_t slot;
  std::uint32_t bytes;      // as sent, Ethernet header included
  std::int64_t arrival_ns;  // CLOCK_REALTIME
  bool is_whole;            // false where the frame is longer than a slot
  bool has_checksum;        // false where the sender left its checksum to hardware that does not exist
};

}  // namespace fabricbench::emulated_switch

// Layer rdma by RDMA writes of which nobody is told: the receiver polls its memory. Each message has a word of 8 bytes
// with its number, the last of a slot at the receiver; once the number is there, so is the message.
//
// A message of up to `inline_bytes` lies right before the word, and both are one write: the door relies on the adapter
// that places the bytes of one packet in the order of their addresses, or at once. No standard promises that, but
// programs that wait for the last byte (perftest's ib_write_lat) rely on it as well. A longer message goes where the
// receiver has granted it a place, and the word follows in a write of its own: the door then relies only on what holds
// for every reliable connection, that writes are carried out in the order in which they were posted. Verification
// compares whole payloads, as soon as the word is there.
//
// There are no events: receivers poll, and a cell whose receivers are to sleep is refused. Where a process has one
// processor, an empty poll gives it to others.
#pragma once

#include "transport/rdma_connected.hpp"

namespace fabricbench {

struct WritePollTransfer {
  static constexpr bool is_written = true;
  static constexpr bool is_polled = true;
};

/// Through writes into the peer's memory, which the peer polls.
struct RdmaWritePollDevice : ConnectedDevice<WritePollTransfer> {
  static constexpr std::string_view door = "write-poll";
  static constexpr std::array receives{Receive::polling};
  static constexpr std::string_view receives_because = "a write wakes nobody";
  using ConnectedDevice::ConnectedDevice;
};

static_assert(Device<RdmaWritePollDevice>);

}  // namespace fabricbench

// Layer rdma by RDMA write with immediate data: the sender's adapter writes each message into the buffer that the peer
// has told of, and the immediate data takes a receive there, without memory, whose completion wakes the peer. Where to
// write costs a write of 32 bytes from the receiver for each message of a round trip; a stream tells many at once.
#pragma once

#include "transport/rdma_connected.hpp"

namespace fabricbench {

struct WriteTransfer {
  static constexpr bool is_written = true;
  static constexpr bool is_polled = false;
};

/// Through writes into the peer's memory, each told by a completion.
struct RdmaWriteDevice : ConnectedDevice<WriteTransfer> {
  static constexpr std::string_view door = "write";
  using ConnectedDevice::ConnectedDevice;
};

static_assert(Device<RdmaWriteDevice>);

}  // namespace fabricbench

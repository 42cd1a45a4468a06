// Layer rdma by send and receive: each message goes into the buffer whose receive the peer posted first.
#pragma once

#include "transport/rdma_connected.hpp"

namespace fabricbench {

struct SendTransfer {
  static constexpr bool is_written = false;
  static constexpr bool is_polled = false;
};

/// Through messages that the peer has a buffer posted for.
struct RdmaSendDevice : ConnectedDevice<SendTransfer> {
  static constexpr std::string_view door = "send";
  using ConnectedDevice::ConnectedDevice;
};

static_assert(Device<RdmaSendDevice>);
static_assert(PoolingTransport<RdmaSendDevice::Path<Receive::blocking>> &&
              PrepostingTransport<RdmaSendDevice::Path<Receive::polling>>);

}  // namespace fabricbench

// Layer rdma by RDMA writes and nothing else, as perftest's ib_write_lat and ib_write_bw: no immediate value, no word
// beside the message, and no credit, for both ends know from the beginning where to write. A ping-pong writes its
// message into the other's memory, which polls the last byte of it; the door relies on the adapter that places the
// bytes of a write in the order of their addresses, which no standard promises. A stream keeps writes under way into
// one place, and who writes keeps the time by its completions: the other is told of nothing.
//
// There are no events: receivers poll, and a cell whose receivers are to sleep is refused.
#pragma once

#include "transport/rdma_one_sided.hpp"

namespace fabricbench {

struct PlainWriteAccess {
  static constexpr bool adds = false;
  static constexpr bool writes = true;
  static constexpr Traits traits{
      .is_reliable = true, .is_ordered = true, .framing = Framing::message, .smallest_message = 1};

  static void describe(verbs::SendRequest& request, Exposed aim) {
    request.operation = verbs::Operation::write;
    request.remote = {.address = aim.address, .key = aim.key};
  }
  static void refuse_unable(const Adapter&) {}
};

/// Through writes into the peer's memory of which nobody is told.
struct RdmaWritePlainDevice : OneSidedDevice<PlainWriteAccess> {
  static constexpr std::string_view door = "write-plain";
  static constexpr std::array receives{Receive::polling};
  static constexpr std::string_view receives_because = "a write wakes nobody";
  using OneSidedDevice::OneSidedDevice;
};

static_assert(Device<RdmaWritePlainDevice>);
static_assert(WritingTransport<RdmaWritePlainDevice::Path<Receive::polling>>);

}  // namespace fabricbench

// Layer rdma by RDMA reads: a rank fetches what lies in the memory of the other, which takes no part.
#pragma once

#include "transport/rdma_one_sided.hpp"

namespace fabricbench {

struct ReadAccess {
  static constexpr bool adds = false;
  static constexpr bool writes = false;
  static constexpr Traits traits{
      .is_reliable = true, .is_ordered = true, .framing = Framing::message, .smallest_message = 1};

  static void describe(verbs::SendRequest& request, Exposed aim) {
    request.operation = verbs::Operation::read;
    request.remote = {.address = aim.address, .key = aim.key};
  }
  static void refuse_unable(const Adapter&) {}
};

/// Through reads of the peer's memory.
struct RdmaReadDevice : OneSidedDevice<ReadAccess> {
  static constexpr std::string_view door = "read";
  using OneSidedDevice::OneSidedDevice;
};

static_assert(Device<RdmaReadDevice>);

}  // namespace fabricbench

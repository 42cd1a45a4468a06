// Layer rdma by atomic operations: a rank adds 1 to a word of 8 bytes in the memory of the other, which takes no part,
// and gets what the word was (fetch and add). So each result tells how many additions there were before it.
#pragma once

#include "transport/rdma_one_sided.hpp"

namespace fabricbench {

struct AtomicAccess {
  static constexpr bool adds = true;
  static constexpr bool writes = false;
  static constexpr Traits traits{
      .is_reliable = true, .is_ordered = true, .framing = Framing::message, .smallest_message = sizeof(std::uint64_t)};

  static void describe(verbs::SendRequest& request, Exposed aim) {
    request.operation = verbs::Operation::fetch_and_add;
    request.atomic = {.address = aim.address, .compare_or_add = 1, .swap = 0, .key = aim.key};
  }
  static void refuse_unable(const Adapter& adapter) {
    if (adapter.attributes().atomics != 0) return;
    throw Failure(FailureCode::unsupported, "device " + adapter.port().device +
                                                " has no atomic operations (`ibv_devinfo -v`: atomic_cap): take "
                                                "another door");
  }
};

/// Through additions to the peer's memory.
struct RdmaAtomicDevice : OneSidedDevice<AtomicAccess> {
  static constexpr std::string_view door = "atomic";
  using OneSidedDevice::OneSidedDevice;
};

static_assert(Device<RdmaAtomicDevice>);

}  // namespace fabricbench

// What of the application binary interface of librdmacm.so.1 (version RDMACM_1.0) layer rdma takes, declared here as
// verbs_abi.hpp declares that of libibverbs. Fields and values are those of the man pages rdma_create_id(3),
// rdma_get_cm_event(3) and rdma_connect(3), in the order in which the library has them; where its header is there,
// native/tests compares the two.
#pragma once

#include <cstdint>

#include "rdma/verbs_abi.hpp"

namespace fabricbench::verbs {

struct EventChannel {
  int descriptor;
};

/// What a connection is made and known by. The library allocates it, and has more after these.
struct Identifier {
  Context* verbs;  // the library's own, of the same device as ours
  EventChannel* channel;
  void* user;
  QueuePair* pair;  // none: our queue pairs are told by their numbers
};

inline constexpr int port_space_of_streams = 0x0106;

enum class EventKind : int {
  address_resolved,
  address_error,
  route_resolved,
  route_error,
  connect_request,
  connect_response,
  connect_error,
  unreachable,
  rejected,
  established,
  disconnected,
  device_removal,
  multicast_join,
  multicast_error,
  address_change,
  time_wait_over,
};

struct ConnectionParameters {
  const void* data;
  std::uint8_t data_bytes;
  std::uint8_t reads_in;
  std::uint8_t reads_out;
  std::uint8_t flow_control;
  std::uint8_t retries;
  std::uint8_t receiver_retries;
  std::uint8_t has_shared_receive_queue;
  std::uint32_t pair_number;
};

/// The library allocates it, and has what datagrams have to say where the parameters are.
struct Event {
  Identifier* identifier;
  Identifier* listener;
  EventKind kind;
  int status;  // 0, an errno or its negative, or a reason to reject
  ConnectionParameters parameters;
};

}  // namespace fabricbench::verbs

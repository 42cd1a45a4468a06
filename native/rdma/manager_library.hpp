// librdmacm, opened when the first device that speaks iWARP is: on RoCE and InfiniBand nothing asks for it.
#pragma once

#include <sys/socket.h>

#include <string_view>

#include "rdma/manager_abi.hpp"

namespace fabricbench::verbs {

/// The functions of the library, by their names there without `rdma_`.
struct ManagerLibrary {
  EventChannel* (*create_event_channel)();
  void (*destroy_event_channel)(EventChannel*);
  int (*create_id)(EventChannel*, Identifier**, void* user, int port_space);
  int (*destroy_id)(Identifier*);
  int (*bind_addr)(Identifier*, sockaddr*);
  int (*listen)(Identifier*, int backlog);
  std::uint16_t (*get_src_port)(Identifier*);  // network byte order
  int (*resolve_addr)(Identifier*, sockaddr* from, sockaddr* to, int timeout_ms);
  int (*resolve_route)(Identifier*, int timeout_ms);
  int (*connect)(Identifier*, ConnectionParameters*);
  int (*accept)(Identifier*, ConnectionParameters*);
  int (*reject)(Identifier*, const void* data, std::uint8_t bytes);
  int (*get_cm_event)(EventChannel*, Event**);
  int (*ack_cm_event)(Event*);
};

/// Throws a Failure that names the package where the library is not installed.
const ManagerLibrary& manager_library();

/// `RDMA_CM_EVENT_UNREACHABLE`, and in words what it says of a connection that is wanted.
std::string_view name_of(EventKind kind);
std::string_view meaning_of(EventKind kind);

}  // namespace fabricbench::verbs

#include "rdma/manager_library.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <string>

#include "base/failure.hpp"

namespace fabricbench::verbs {
namespace {

constexpr const char* file_name = "librdmacm.so.1";

template <class Function>
void find(void* handle, Function& function, const char* name) {
  const std::string symbol = "rdma_" + std::string(name);
  void* const found = dlsym(handle, symbol.c_str());
  if (found == nullptr) {
    throw Failure(FailureCode::unsupported,
                  std::string(file_name) + " has no " + symbol + ": it is older than rdma-core; install a newer one");
  }
  function = reinterpret_cast<Function>(found);
}

ManagerLibrary open_library() {
  void* const handle = dlopen(file_name, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const why = dlerror();
    throw Failure(FailureCode::unsupported,
                  "iWARP needs the library " + std::string(file_name) +
                      ", which makes its connections and which this host does not have (" +
                      (why != nullptr ? why : "") +
                      "): install it (librdmacm1 of Debian and Ubuntu, librdmacm of Fedora and RHEL)");
  }
  ManagerLibrary all{};
  find(handle, all.create_event_channel, "create_event_channel");
  find(handle, all.destroy_event_channel, "destroy_event_channel");
  find(handle, all.create_id, "create_id");
  find(handle, all.destroy_id, "destroy_id");
  find(handle, all.bind_addr, "bind_addr");
  find(handle, all.listen, "listen");
  find(handle, all.get_src_port, "get_src_port");
  find(handle, all.resolve_addr, "resolve_addr");
  find(handle, all.resolve_route, "resolve_route");
  find(handle, all.connect, "connect");
  find(handle, all.accept, "accept");
  find(handle, all.reject, "reject");
  find(handle, all.get_cm_event, "get_cm_event");
  find(handle, all.ack_cm_event, "ack_cm_event");
  return all;
}

struct Meaning {
  EventKind kind;
  std::string_view name;
  std::string_view words;
};

constexpr std::array meanings{
    Meaning{EventKind::address_resolved, "RDMA_CM_EVENT_ADDR_RESOLVED", "the peer's address is known"},
    Meaning{EventKind::address_error, "RDMA_CM_EVENT_ADDR_ERROR",
            "the peer's address leads to no device: is there a route to it from our address, and does it answer to "
            "ARP?"},
    Meaning{EventKind::route_resolved, "RDMA_CM_EVENT_ROUTE_RESOLVED", "the route to the peer is known"},
    Meaning{EventKind::route_error, "RDMA_CM_EVENT_ROUTE_ERROR",
            "there is no route to the peer: check the addresses and the routes of both hosts"},
    Meaning{EventKind::connect_request, "RDMA_CM_EVENT_CONNECT_REQUEST", "a peer wants a connection"},
    Meaning{EventKind::connect_response, "RDMA_CM_EVENT_CONNECT_RESPONSE", "the peer has answered"},
    Meaning{EventKind::connect_error, "RDMA_CM_EVENT_CONNECT_ERROR",
            "the connection broke off while it was made: is the peer still there?"},
    Meaning{EventKind::unreachable, "RDMA_CM_EVENT_UNREACHABLE",
            "the peer does not answer: is the link up, the peer alive, and no firewall between them?"},
    Meaning{EventKind::rejected, "RDMA_CM_EVENT_REJECTED", "the peer wants no connection: does it still take part?"},
    Meaning{EventKind::established, "RDMA_CM_EVENT_ESTABLISHED", "the connection is there"},
    Meaning{EventKind::disconnected, "RDMA_CM_EVENT_DISCONNECTED",
            "the connection was closed: did the peer's program end?"},
    Meaning{EventKind::device_removal, "RDMA_CM_EVENT_DEVICE_REMOVAL", "the device was taken away"},
    Meaning{EventKind::multicast_join, "RDMA_CM_EVENT_MULTICAST_JOIN", "a group was joined"},
    Meaning{EventKind::multicast_error, "RDMA_CM_EVENT_MULTICAST_ERROR", "a group cannot be joined"},
    Meaning{EventKind::address_change, "RDMA_CM_EVENT_ADDR_CHANGE",
            "the address of the interface has moved to another device"},
    Meaning{EventKind::time_wait_over, "RDMA_CM_EVENT_TIMEWAIT_EXIT", "the connection is over"},
};

const Meaning* find_meaning(EventKind kind) {
  const auto found = std::ranges::find(meanings, kind, &Meaning::kind);
  return found == meanings.end() ? nullptr : &*found;
}

}  // namespace

const ManagerLibrary& manager_library() {
  static const ManagerLibrary all = open_library();
  return all;
}

std::string_view name_of(EventKind kind) {
  const Meaning* const meaning = find_meaning(kind);
  return meaning == nullptr ? "an event of its own" : meaning->name;
}

std::string_view meaning_of(EventKind kind) {
  const Meaning* const meaning = find_meaning(kind);
  return meaning == nullptr ? "see librdmacm's manual" : meaning->words;
}

}  // namespace fabricbench::verbs

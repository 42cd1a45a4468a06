// libibverbs, opened when the first cell asks for layer rdma: the program runs where there is none. What is called for
// each message is called through the open device itself (verbs_abi.hpp).
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/failure.hpp"
#include "rdma/verbs_abi.hpp"

namespace fabricbench::verbs {

/// The functions of the library, by their names there without `ibv_`.
struct Library {
  Device** (*get_device_list)(int* count);
  void (*free_device_list)(Device** list);
  const char* (*get_device_name)(Device*);
  Context* (*open_device)(Device*);
  int (*close_device)(Context*);
  int (*query_device)(Context*, DeviceAttributes*);
  int (*query_port)(Context*, std::uint8_t port, PortAttributes*);
  ProtectionDomain* (*alloc_pd)(Context*);
  int (*dealloc_pd)(ProtectionDomain*);
  MemoryRegion* (*reg_mr)(ProtectionDomain*, void* begin, std::size_t bytes, int access);
  int (*dereg_mr)(MemoryRegion*);
  CompletionChannel* (*create_comp_channel)(Context*);
  int (*destroy_comp_channel)(CompletionChannel*);
  CompletionQueue* (*create_cq)(Context*, int entries, void* user, CompletionChannel*, int vector);
  int (*resize_cq)(CompletionQueue*, int entries);
  int (*destroy_cq)(CompletionQueue*);
  int (*get_cq_event)(CompletionChannel*, CompletionQueue**, void** user);
  void (*ack_cq_events)(CompletionQueue*, unsigned count);
  QueuePair* (*create_qp)(ProtectionDomain*, QueuePairSetup*);
  int (*modify_qp)(QueuePair*, QueuePairAttributes*, int what);
  int (*destroy_qp)(QueuePair*);
  AddressHandle* (*create_ah)(ProtectionDomain*, Address*);
  int (*destroy_ah)(AddressHandle*);
  int (*get_async_event)(Context*, AsyncEvent*);
  void (*ack_async_event)(AsyncEvent*);
};

/// Throws a Failure that names the package where the library is not installed.
const Library& library();

/// Throw the Failure of why_no_device() where the library knows none.
void need_some_device();
/// A device by its name, open.
Context* open_device(const std::string& name);

/// Why the library lists no device: the kernel has no support for it, it has no device, or the library lacks the
/// provider of one.
/// @param root  of the file system that has /sys
Failure why_no_device(const std::filesystem::path& root = "/");

/// `IBV_WC_RETRY_EXC_ERR`, and in words what it says.
std::string_view name_of(Status status);
std::string_view meaning_of(Status status);

/// What ends a cell, of what a device tells of itself: its name, and in words what it says. Nothing of the rest.
struct AsyncMeaning {
  AsyncEventKind kind;
  std::string_view name;
  std::string_view words;
};
const AsyncMeaning* failure_told_by(AsyncEventKind kind);

/// Throw the Failure of a completion that is none. `told`: what its device has told beside.
[[noreturn]] void fail_with_status(Status status, std::string_view what, const std::string& told = {});

}  // namespace fabricbench::verbs

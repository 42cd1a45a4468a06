#include "rdma/library.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <vector>

#include "base/folder.hpp"

namespace fabricbench::verbs {
namespace {

namespace fs = std::filesystem;

constexpr const char* file_name = "libibverbs.so.1";
constexpr const char* packages =
    "libibverbs1 and ibverbs-providers of Debian and Ubuntu, libibverbs and rdma-core of Fedora and RHEL";

template <class Function>
void find(void* handle, Function& function, const char* name) {
  const std::string symbol = "ibv_" + std::string(name);
  void* found = dlvsym(handle, symbol.c_str(), "IBVERBS_1.1");
  if (found == nullptr) found = dlsym(handle, symbol.c_str());
  if (found == nullptr) {
    throw Failure(FailureCode::unsupported,
                  std::string(file_name) + " has no " + symbol + ": it is older than rdma-core; install a newer one");
  }
  function = reinterpret_cast<Function>(found);
}

Library open_library() {
  void* const handle = dlopen(file_name, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const why = dlerror();
    throw Failure(FailureCode::unsupported, "layer rdma needs the library " + std::string(file_name) +
                                                ", which this host does not have (" + (why != nullptr ? why : "") +
                                                "): install it (" + packages + ")");
  }
  Library all{};
  find(handle, all.get_device_list, "get_device_list");
  find(handle, all.free_device_list, "free_device_list");
  find(handle, all.get_device_name, "get_device_name");
  find(handle, all.open_device, "open_device");
  find(handle, all.close_device, "close_device");
  find(handle, all.query_device, "query_device");
  find(handle, all.query_port, "query_port");
  find(handle, all.alloc_pd, "alloc_pd");
  find(handle, all.dealloc_pd, "dealloc_pd");
  find(handle, all.reg_mr, "reg_mr");
  find(handle, all.dereg_mr, "dereg_mr");
  find(handle, all.create_comp_channel, "create_comp_channel");
  find(handle, all.destroy_comp_channel, "destroy_comp_channel");
  find(handle, all.create_cq, "create_cq");
  find(handle, all.resize_cq, "resize_cq");
  find(handle, all.destroy_cq, "destroy_cq");
  find(handle, all.get_cq_event, "get_cq_event");
  find(handle, all.ack_cq_events, "ack_cq_events");
  find(handle, all.create_qp, "create_qp");
  find(handle, all.modify_qp, "modify_qp");
  find(handle, all.destroy_qp, "destroy_qp");
  find(handle, all.create_ah, "create_ah");
  find(handle, all.destroy_ah, "destroy_ah");
  find(handle, all.get_async_event, "get_async_event");
  find(handle, all.ack_async_event, "ack_async_event");
  return all;
}

std::string joined(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return list;
}

struct Meaning {
  Status status;
  std::string_view name;
  std::string_view words;
};

constexpr std::array meanings{
    Meaning{Status::success, "IBV_WC_SUCCESS", "it is complete"},
    Meaning{Status::local_length, "IBV_WC_LOC_LEN_ERR", "a message is longer than the receive that took it"},
    Meaning{Status::local_operation, "IBV_WC_LOC_QP_OP_ERR", "the adapter refuses the request"},
    Meaning{Status::local_protection, "IBV_WC_LOC_PROT_ERR", "a buffer is not registered"},
    Meaning{Status::flushed, "IBV_WC_WR_FLUSH_ERR", "the queue pair has failed before"},
    Meaning{Status::bad_response, "IBV_WC_BAD_RESP_ERR", "the peer gave an answer to another request"},
    Meaning{Status::local_access, "IBV_WC_LOC_ACCESS_ERR", "the peer may not write there"},
    Meaning{Status::remote_invalid_request, "IBV_WC_REM_INV_REQ_ERR", "the peer refuses the request"},
    Meaning{Status::remote_access, "IBV_WC_REM_ACCESS_ERR", "the peer does not allow access to that memory"},
    Meaning{Status::remote_operation, "IBV_WC_REM_OP_ERR", "the peer could not complete the request"},
    Meaning{Status::retry_exceeded, "IBV_WC_RETRY_EXC_ERR",
            "the peer acknowledges nothing, however often it is sent: is the link up and the peer alive, and do "
            "`timeout` and `retry_count` suit the network?"},
    Meaning{Status::receiver_not_ready, "IBV_WC_RNR_RETRY_EXC_ERR", "the peer has no receive posted for it"},
    Meaning{Status::fatal, "IBV_WC_FATAL_ERR", "the adapter has failed: see the kernel's log"},
    Meaning{Status::response_timeout, "IBV_WC_RESP_TIMEOUT_ERR", "the peer gave no answer in time"},
    Meaning{Status::general, "IBV_WC_GENERAL_ERR", "the adapter does not say why"},
};

constexpr std::array async_failures{
    AsyncMeaning{AsyncEventKind::completion_queue_error, "IBV_EVENT_CQ_ERR",
                 "a completion queue has overrun or failed"},
    AsyncMeaning{AsyncEventKind::queue_pair_fatal, "IBV_EVENT_QP_FATAL", "a queue pair has failed"},
    AsyncMeaning{AsyncEventKind::request_error, "IBV_EVENT_QP_REQ_ERR", "the peer sent a request that is none"},
    AsyncMeaning{AsyncEventKind::access_error, "IBV_EVENT_QP_ACCESS_ERR", "the peer may not do what it asked for"},
    AsyncMeaning{AsyncEventKind::path_migration_error, "IBV_EVENT_PATH_MIG_ERR", "a path could not be moved"},
    AsyncMeaning{AsyncEventKind::device_fatal, "IBV_EVENT_DEVICE_FATAL", "it has failed or was removed"},
    AsyncMeaning{AsyncEventKind::port_error, "IBV_EVENT_PORT_ERR", "its link went down"},
    AsyncMeaning{AsyncEventKind::lid_change, "IBV_EVENT_LID_CHANGE", "the subnet manager gave it another LID"},
    AsyncMeaning{AsyncEventKind::partition_change, "IBV_EVENT_PKEY_CHANGE", "its partitions were changed"},
    AsyncMeaning{AsyncEventKind::gid_change, "IBV_EVENT_GID_CHANGE", "its addresses were changed"},
    AsyncMeaning{AsyncEventKind::work_queue_fatal, "IBV_EVENT_WQ_FATAL", "a work queue has failed"},
};

}  // namespace

const Library& library() {
  static const Library all = open_library();
  return all;
}

Failure why_no_device(const fs::path& root) {
  const std::vector<std::string> devices = names_in(root / "sys/class/infiniband");
  std::vector<std::string> offered;
  for (const std::string& name : names_in(root / "sys/class/infiniband_verbs")) {
    if (name.starts_with("uverbs")) offered.push_back(name);
  }
  if (!offered.empty()) {
    return {FailureCode::unsupported,
            "the kernel offers " + joined(offered) + " (" + joined(devices) +
                "), but libibverbs has no provider for it: install the adapter's (package ibverbs-providers, in "
                "rdma-core elsewhere), or name where it lies in IBV_DRIVERS"};
  }
  if (!devices.empty()) {
    return {FailureCode::unsupported, "the kernel has " + joined(devices) +
                                          " but does not offer it to programs: load its module ib_uverbs "
                                          "(`modprobe ib_uverbs`)"};
  }
  std::error_code error;
  if (!fs::exists(root / "sys/class/infiniband", error)) {
    return {
        FailureCode::unsupported,
        "this kernel has no support for RDMA (there is no /sys/class/infiniband): load the adapter's module, mlx5_ib "
        "or irdma say, or rdma_rxe for soft RoCE"};
  }
  return {FailureCode::unsupported,
          "this host has no RDMA device, though its kernel supports them (/sys/class/infiniband is empty): load the "
          "adapter's module, or make one by `rdma link add rxe0 type rxe netdev INTERFACE`"};
}

void need_some_device() {
  int count = 0;
  Device** const list = library().get_device_list(&count);
  if (list != nullptr) library().free_device_list(list);
  if (list == nullptr || count == 0) throw why_no_device();
}

Context* open_device(const std::string& name) {
  const Library& all = library();
  int count = 0;
  Device** const list = all.get_device_list(&count);
  if (list == nullptr) throw why_no_device();
  Context* context = nullptr;
  std::vector<std::string> names;
  bool is_known = false;
  int error = 0;
  for (int i = 0; i < count && !is_known; ++i) {
    names.emplace_back(all.get_device_name(list[i]));
    is_known = names.back() == name;
    if (!is_known) continue;
    context = all.open_device(list[i]);
    error = errno;
  }
  all.free_device_list(list);
  if (context != nullptr) return context;
  if (!is_known) {
    throw Failure(FailureCode::unsupported, "libibverbs has no provider for the RDMA device " + name + "; it knows " +
                                                joined(names) + ": install the one of that adapter");
  }
  const bool is_refused = error == EACCES || error == EPERM;
  fail_with_errno(error, "ibv_open_device(" + name + ")",
                  is_refused ? "/dev/infiniband/uverbs* must be readable and writable for this user" : "");
}

std::string_view name_of(Status status) {
  const auto found = std::ranges::find(meanings, status, &Meaning::status);
  return found == meanings.end() ? "a status of its own" : found->name;
}

std::string_view meaning_of(Status status) {
  const auto found = std::ranges::find(meanings, status, &Meaning::status);
  return found == meanings.end() ? "see the adapter's manual" : found->words;
}

const AsyncMeaning* failure_told_by(AsyncEventKind kind) {
  const auto* const found = std::ranges::find(async_failures, kind, &AsyncMeaning::kind);
  return found == async_failures.end() ? nullptr : found;
}

void fail_with_status(Status status, std::string_view what, const std::string& told) {
  const bool is_silence = status == Status::retry_exceeded || status == Status::response_timeout;
  throw Failure(is_silence ? FailureCode::unreachable : FailureCode::error,
                std::string(what) + " failed (" + std::string(name_of(status)) + ", " +
                    std::to_string(static_cast<int>(status)) + "): " + std::string(meaning_of(status)) +
                    (told.empty() ? "" : "; " + told));
}

}  // namespace fabricbench::verbs

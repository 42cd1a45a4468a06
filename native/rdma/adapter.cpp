#include "rdma/adapter.hpp"

#include <fcntl.h>
#include <sys/resource.h>

#include <cerrno>
#include <string>

#include "base/failure.hpp"
#include "rdma/manager.hpp"

namespace fabricbench {
namespace {

using verbs::library;

std::string kibibytes(std::size_t bytes) { return std::to_string((bytes + 1023) / 1024) + " KiB"; }

/// Why memory could not be registered; nearly always because too little of it may be locked.
[[noreturn]] void fail_registering(std::size_t bytes, std::size_t registered, int error) {
  rlimit limit{};
  getrlimit(RLIMIT_MEMLOCK, &limit);
  if (error == ENOMEM && limit.rlim_cur != RLIM_INFINITY) {
    throw Failure(FailureCode::permission,
                  "ibv_reg_mr cannot lock " + kibibytes(bytes) + " of memory beside " + kibibytes(registered) +
                      ": this process may lock " + kibibytes(limit.rlim_cur) +
                      " (`ulimit -l`); raise memlock in /etc/security/limits.conf or LimitMEMLOCK of the service "
                      "that starts it, to unlimited best");
  }
  fail_with_errno(error, "ibv_reg_mr of " + kibibytes(bytes));
}

}  // namespace

std::shared_ptr<Adapter> Adapter::open(const Attachment& attachment, const std::filesystem::path& root) {
  verbs::need_some_device();
  RdmaPort port = find_rdma_port(attachment.rdma, attachment.interface, root);
  if (port.is_iwarp) verbs::manager_library();
  return std::shared_ptr<Adapter>(new Adapter(std::move(port), attachment, root));
}

Adapter::Adapter(RdmaPort port, const Attachment& attachment, std::filesystem::path root)
    : port_(std::move(port)),
      root_(std::move(root)),
      identity_(port_identity(port_, root_)),
      context_(verbs::open_device(port_.device)) {
  const auto close_and_fail = [&](int error, const char* call) {
    if (domain_ != nullptr) library().dealloc_pd(domain_);
    library().close_device(context_);
    fail_with_errno(error, std::string(call) + "(" + port_.device + ")");
  };
  domain_ = library().alloc_pd(context_);
  if (domain_ == nullptr) close_and_fail(errno, "ibv_alloc_pd");
  if (const int error = library().query_device(context_, &attributes_)) close_and_fail(error, "ibv_query_device");
  if (const int error = library().query_port(context_, static_cast<std::uint8_t>(port_.number), &port_attributes_)) {
    close_and_fail(error, "ibv_query_port");
  }
  const int flags = fcntl(context_->event_descriptor, F_GETFL);
  if (flags < 0 || fcntl(context_->event_descriptor, F_SETFL, flags | O_NONBLOCK) != 0) {
    close_and_fail(errno, "fcntl(async_fd)");
  }
  if (!port_.is_iwarp) return;
  try {
    manager_ = std::make_unique<ConnectionManager>(port_.device, needed_address(attachment));
  } catch (...) {
    library().dealloc_pd(domain_);
    library().close_device(context_);
    throw;
  }
}

Adapter::~Adapter() {
  manager_.reset();
  library().dealloc_pd(domain_);
  library().close_device(context_);
}

RdmaAttachment Adapter::attachment() const {
  RdmaAttachment attachment;
  attachment.device = port_.device;
  attachment.port = port_.number;
  attachment.driver = port_.driver;
  attachment.transport = port_.transport();
  attachment.netdev = port_.netdev;
  attachment.gid_index = port_.gid_index;
  attachment.gid = gid_text(port_.gid);
  attachment.lid = port_attributes_.lid;
  attachment.port_mtu = mtu();
  return attachment;
}

std::string Adapter::reason_of(const verbs::AsyncEvent& event) {
  const verbs::AsyncMeaning* const meaning = verbs::failure_told_by(event.kind);
  if (meaning == nullptr) return {};
  std::string more;
  switch (event.kind) {
    case verbs::AsyncEventKind::port_error:
      if (event.port != port_.number) return {};
      break;
    case verbs::AsyncEventKind::lid_change:
    case verbs::AsyncEventKind::partition_change:
    case verbs::AsyncEventKind::gid_change: {
      // Of a port's many addresses others may come and go, those of IPv6 for one.
      std::string identity = port_identity(port_, root_);
      if (event.port != port_.number || identity == identity_) return {};
      more = ": peers knew it by " + identity_ + ", and now it has " + identity;
      identity_ = std::move(identity);
      break;
    }
    default:
      break;
  }
  std::string reason = "RDMA device " + port_.name() + " told " + std::string(meaning->name) +
                       " meanwhile: " + std::string(meaning->words) + more + "; see the kernel's log";
  if (event.kind == verbs::AsyncEventKind::device_fatal) failed_ = reason;
  return reason;
}

std::string Adapter::next_failure() {
  for (verbs::AsyncEvent event{}; failed_.empty();) {
    if (library().get_async_event(context_, &event) != 0) {
      if (errno == EAGAIN || errno == EINTR) break;
      failed_ = "RDMA device " + port_.name() + " is no longer there (ibv_get_async_event: errno " +
                std::to_string(errno) + "): was it removed, or its driver unloaded?";
      break;
    }
    std::string reason = reason_of(event);
    library().ack_async_event(&event);
    if (!reason.empty()) return reason;
  }
  return failed_;
}

void Adapter::refuse_failed() {
  if (const std::string reason = next_failure(); !reason.empty()) throw Failure(FailureCode::unreachable, reason);
}

void Adapter::forget_events() {
  while (failed_.empty() && !next_failure().empty()) continue;
  if (!failed_.empty()) throw Failure(FailureCode::unreachable, failed_);
}

verbs::MemoryRegion* Adapter::register_memory(std::byte* begin, std::size_t bytes) const {
  const unsigned access =
      verbs::access_local_write | verbs::access_remote_write | verbs::access_remote_read | atomic_access();
  verbs::MemoryRegion* const region = library().reg_mr(domain_, begin, bytes, static_cast<int>(access));
  if (region != nullptr) [[likely]]
    return region;
  const int error = errno;
  std::size_t registered = 0;
  for (const Region& one : regions_) registered += static_cast<std::size_t>(one.end - one.begin);
  fail_registering(bytes, registered, error);
}

void Adapter::register_once(std::span<std::byte> memory) const {
  library().dereg_mr(register_memory(memory.data(), memory.size()));
}

void Adapter::need_datagrams() const {
  if (!port_.is_iwarp) return;
  throw Failure(FailureCode::unsupported, "device " + port_.device +
                                              " speaks iWARP, which has no datagrams: take door `send` or `write`, or "
                                              "a device of RoCE or InfiniBand");
}

MessageBuffer Adapter::allocate(std::size_t bytes, MemoryKind kind) {
  MessageBuffer memory = host_memory(bytes, kind);
  const std::size_t size = std::max<std::size_t>(bytes, 1);
  verbs::MemoryRegion* const region = register_memory(memory.data(), size);
  const Region entry{memory.data(), memory.data() + size, region->local_key, region->remote_key};
  regions_.insert(std::ranges::upper_bound(regions_, entry.begin, {}, &Region::begin), entry);
  last_ = 0;
  std::byte* const begin = memory.data();
  const std::size_t huge_bytes = memory.huge_bytes();
  auto give_back = [adapter = shared_from_this(), region, keeper = memory.keeper()](std::byte* place) {
    adapter->forget(place);
    library().dereg_mr(region);
  };
  return {std::shared_ptr<std::byte>(begin, std::move(give_back)), bytes, huge_bytes};
}

void Adapter::forget(const std::byte* begin) {
  std::erase_if(regions_, [&](const Region& region) { return region.begin == begin; });
  last_ = 0;
}

const Adapter::Region& Adapter::find_region(const std::byte* place) const {
  const auto after = std::ranges::upper_bound(regions_, place, {}, &Region::begin);
  if (after != regions_.begin() && std::prev(after)->has(place)) {
    last_ = static_cast<std::size_t>(std::prev(after) - regions_.begin());
    return *std::prev(after);
  }
  throw Failure(FailureCode::error, "a message lies in memory that its device has not lent");
}

}  // namespace fabricbench

#include "transport/xdp_port.hpp"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <map>
#include <string>

#include "base/failure.hpp"

namespace fabricbench {
namespace {

constexpr std::uint32_t most_paths = 512;
constexpr std::uint32_t headroom = 256;  // that the kernel leaves before each received frame (XDP_PACKET_HEADROOM)
constexpr std::size_t ethernet_bytes = 14;
constexpr std::uint32_t small_chunk = 2048;
constexpr std::uint32_t large_chunk = 4096;         // a page, the most that there is
constexpr std::uint32_t chunks_for_sending = 1024;  // under way at once
constexpr std::uint32_t chunks_for_receiving = 4096;
constexpr std::uint32_t least_chunks_of_queue = 512;
constexpr std::uint32_t path_ring = 2048;
constexpr int send_buffer_bytes = 8 << 20;  // of bookkeeping for chunks_for_sending frames

std::uint32_t chunk_bytes_for(int mtu) {
  return static_cast<std::uint32_t>(mtu) + ethernet_bytes + headroom <= small_chunk ? small_chunk : large_chunk;
}

Descriptor open_xdp_socket() {
  Descriptor opened(::socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0));
  if (opened.get() >= 0) return opened;
  if (errno == EAFNOSUPPORT) {
    throw Failure(FailureCode::unsupported,
                  "this kernel has no AF_XDP sockets (CONFIG_XDP_SOCKETS): take door packet or ring");
  }
  fail_with_errno("socket(AF_XDP)");
}

/// The kernel lets go of a queue some time after the socket that was bound to it is closed.
constexpr int tries_to_bind = 150;
constexpr timespec between_tries{0, 20'000'000};

void bind_to_queue(const Descriptor& socket, const Interface& interface, std::uint32_t queue, std::uint16_t flags,
                   int shares_with) {
  sockaddr_xdp address{};
  address.sxdp_family = AF_XDP;
  address.sxdp_flags = flags;
  address.sxdp_ifindex = static_cast<std::uint32_t>(interface.index);
  address.sxdp_queue_id = queue;
  address.sxdp_shared_umem_fd = static_cast<std::uint32_t>(shares_with);
  const std::string name = "bind(AF_XDP, " + interface.name + ", queue " + std::to_string(queue) + ")";
  for (int i = 0; i < tries_to_bind; ++i) {
    if (bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return;
    if (errno == EINTR) continue;
    if (errno != EBUSY) break;
    nanosleep(&between_tries, nullptr);
  }
  if (errno == EBUSY) {
    throw Failure(FailureCode::unsupported,
                  name +
                      " failed: for 3 s another AF_XDP socket has had that queue; end the program that has it, or "
                      "take door packet or ring");
  }
  if (errno == EOPNOTSUPP || errno == EINVAL) {
    throw Failure(FailureCode::unsupported, name + " failed (" + std::strerror(errno) +
                                                "): this interface takes no AF_XDP socket there; take door packet or "
                                                "ring");
  }
  fail_with_errno(name);
}

void register_memory(const Descriptor& socket, const Mapping& memory, std::uint32_t chunk_bytes) {
  xdp_umem_reg registration{};
  registration.addr = reinterpret_cast<std::uintptr_t>(memory.data());
  registration.len = memory.size();
  registration.chunk_size = chunk_bytes;
  if (setsockopt(socket.get(), SOL_XDP, XDP_UMEM_REG, &registration, sizeof registration) == 0) return;
  if (errno == ENOBUFS) {
    throw Failure(FailureCode::permission,
                  "registering " + std::to_string(memory.size() >> 20U) +
                      " MiB for AF_XDP is more memory than this user may lock: raise `ulimit -l`, or grant "
                      "CAP_IPC_LOCK");
  }
  fail_with_errno("setsockopt(XDP_UMEM_REG)");
}

struct RingFacts {
  int option;
  off_t page_offset;
  const xdp_ring_offset xdp_mmap_offsets::* offsets;
  bool is_produced;
  std::string_view name;
};

constexpr RingFacts facts_of(XdpRing kind) {
  switch (kind) {
    case XdpRing::fill:
      return {XDP_UMEM_FILL_RING, static_cast<off_t>(XDP_UMEM_PGOFF_FILL_RING), &xdp_mmap_offsets::fr, true,
              "XDP_UMEM_FILL_RING"};
    case XdpRing::completion:
      return {XDP_UMEM_COMPLETION_RING, static_cast<off_t>(XDP_UMEM_PGOFF_COMPLETION_RING), &xdp_mmap_offsets::cr,
              false, "XDP_UMEM_COMPLETION_RING"};
    case XdpRing::receive:
      return {XDP_RX_RING, XDP_PGOFF_RX_RING, &xdp_mmap_offsets::rx, false, "XDP_RX_RING"};
    case XdpRing::send:
      break;
  }
  return {XDP_TX_RING, static_cast<off_t>(XDP_PGOFF_TX_RING), &xdp_mmap_offsets::tx, true, "XDP_TX_RING"};
}

}  // namespace

template <class Entry>
MappedXdpRing<Entry>::MappedXdpRing(const Descriptor& socket, XdpRing kind, std::uint32_t entries) : size_(entries) {
  const RingFacts facts = facts_of(kind);
  set_option(socket, SOL_XDP, facts.option, entries, facts.name);
  xdp_mmap_offsets all{};
  socklen_t size = sizeof all;
  if (getsockopt(socket.get(), SOL_XDP, XDP_MMAP_OFFSETS, &all, &size) != 0) {
    fail_with_errno("getsockopt(XDP_MMAP_OFFSETS)");
  }
  const xdp_ring_offset& offsets = all.*facts.offsets;
  memory_ = Mapping(offsets.desc + entries * sizeof(Entry), MAP_SHARED | MAP_POPULATE, socket.get(), facts.page_offset,
                    facts.name);
  auto* const producer = reinterpret_cast<std::uint32_t*>(memory_.data() + offsets.producer);
  auto* const consumer = reinterpret_cast<std::uint32_t*>(memory_.data() + offsets.consumer);
  ours_ = facts.is_produced ? producer : consumer;
  theirs_ = facts.is_produced ? consumer : producer;
  entries_ = reinterpret_cast<Entry*>(memory_.data() + offsets.desc);
}

template class MappedXdpRing<std::uint64_t>;
template class MappedXdpRing<xdp_desc>;

std::shared_ptr<XdpPort> XdpPort::of(const Interface& interface, XdpMode mode) {
  static std::map<int, std::weak_ptr<XdpPort>> all;
  std::weak_ptr<XdpPort>& known = all[interface.index];
  std::shared_ptr<XdpPort> port = known.lock();
  if (!port) known = port = std::make_shared<XdpPort>(interface, mode);
  port->use(mode);
  return port;
}

XdpPort::XdpPort(const Interface& interface, XdpMode mode)
    : interface_(interface),
      counts_(count_queues(interface)),
      chunk_bytes_(chunk_bytes_for(interface.mtu)),
      // A ring has a power of two entries.
      chunks_of_queue_(std::max(std::bit_floor(chunks_for_receiving / counts_.receiving), least_chunks_of_queue)),
      program_(most_paths, counts_.receiving) {
  use(mode);  // whether another rank is on the interface is known at once, other than by bind()
  const std::uint64_t receiving = std::uint64_t{chunks_of_queue_} * counts_.receiving;
  memory_ = Mapping((receiving + chunks_for_sending) * chunk_bytes_, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0,
                    "frames of AF_XDP");
  for (std::uint32_t i = 0; i < chunks_for_sending; ++i) free_.push_back((receiving + i) * chunk_bytes_);
  for (std::uint32_t i = most_paths; i > 0; --i) free_numbers_.push_back(i - 1);
  for (std::uint32_t i = 0; i < counts_.receiving; ++i) queues_.push_back(open_queue(i));
}

/// A driver that does not say has one of each.
XdpPort::QueueCounts XdpPort::count_queues(const Interface& interface) {
  ethtool_channels channels{};
  channels.cmd = ETHTOOL_GCHANNELS;
  ifreq request{};
  interface.name.copy(request.ifr_name, IFNAMSIZ - 1);
  request.ifr_data = reinterpret_cast<char*>(&channels);
  const Descriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (ioctl(socket.get(), SIOCETHTOOL, &request) != 0) return {};
  return {std::max(channels.rx_count + channels.combined_count, 1U),
          std::max(channels.tx_count + channels.combined_count, 1U)};
}

XdpPort::Queue XdpPort::open_queue(std::uint32_t number) {
  Queue queue{.socket = open_xdp_socket(), .fill = {}, .completion = {}, .received = {}};
  const bool is_first = queues_.empty();
  if (is_first) register_memory(queue.socket, memory_, chunk_bytes_);
  queue.fill = {queue.socket, XdpRing::fill, chunks_of_queue_};
  queue.completion = {queue.socket, XdpRing::completion, chunks_for_sending};
  queue.received = {queue.socket, XdpRing::receive, 2};
  for (std::uint64_t i = 0; i < chunks_of_queue_; ++i) {
    queue.fill.push((std::uint64_t{number} * chunks_of_queue_ + i) * chunk_bytes_);
  }
  bind_to_queue(queue.socket, interface_, number, is_first ? XDP_COPY : XDP_SHARED_UMEM,
                is_first ? 0 : queues_.front().socket.get());
  return queue;
}

std::size_t XdpPort::largest_frame() const { return chunk_bytes_ - headroom; }

std::size_t XdpPort::receive_bytes() const {
  return std::size_t{std::min(path_ring, chunks_of_queue_)} * chunk_bytes_ * queues_.size();
}

void XdpPort::take_all_back() {
  for (Queue& queue : queues_) {
    std::uint64_t done = 0;
    while (queue.completion.pop(done)) free_.push_back(done);
  }
}

XdpPlace::XdpPlace(std::shared_ptr<XdpPort> port, std::uint32_t token) : port_(std::move(port)), token_(token) {
  if (port_->free_numbers_.empty()) {
    throw Failure(FailureCode::unsupported, "an interface has room for " + std::to_string(most_paths) +
                                                " paths through AF_XDP: take fewer flows or ranks");
  }
  number_ = port_->free_numbers_.back();
  const std::size_t queues = port_->queues_.size();
  if (queues > 1) any_queue_ = Descriptor(epoll_create1(EPOLL_CLOEXEC));
  for (std::uint32_t i = 0; i < queues; ++i) {
    XdpSocket end{.socket = open_xdp_socket(), .received = {}, .to_send = {}};
    end.received = {end.socket, XdpRing::receive, path_ring};
    end.to_send = {end.socket, XdpRing::send, chunks_for_sending};
    setsockopt(end.socket.get(), SOL_SOCKET, SO_SNDBUFFORCE, &send_buffer_bytes, sizeof send_buffer_bytes);
    bind_to_queue(end.socket, port_->interface_, i, XDP_SHARED_UMEM, port_->queues_[i].socket.get());
    port_->program_.set_socket(number_, i, end.socket);
    epoll_event readable{};
    readable.events = EPOLLIN;
    if (queues > 1 && epoll_ctl(any_queue_.get(), EPOLL_CTL_ADD, end.socket.get(), &readable) != 0) {
      fail_with_errno("epoll_ctl");
    }
    sockets_.push_back(std::move(end));
  }
  port_->program_.set_token(number_, token);
  port_->free_numbers_.pop_back();
}

XdpPlace::~XdpPlace() {
  port_->program_.forget_token(token_);
  for (std::size_t i = 0; i < sockets_.size(); ++i) {
    XdpSocket& end = sockets_[i];
    end.socket = Descriptor();
    xdp_desc left{};
    while (end.received.pop(left)) port_->give_back(i, left);
    end.to_send.take_back([&](const xdp_desc& unsent) { port_->free_.push_back(unsent.addr); });
  }
  port_->free_numbers_.push_back(number_);
}

}  // namespace fabricbench

#include "rdma/queue_pair.hpp"

#include <fcntl.h>
#include <poll.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <sstream>

#include "base/failure.hpp"

namespace fabricbench {
namespace {

using verbs::library;

constexpr std::size_t smallest_mtu = 256;
constexpr std::size_t largest_mtu = 4096;

/// The largest MTU of a path that is possible with so many bytes.
std::size_t possible_mtu(std::size_t bytes) { return std::bit_floor(std::clamp(bytes, smallest_mtu, largest_mtu)); }

/// As the library counts MTUs: 1 is 256 bytes, 5 is 4096.
int mtu_number(std::size_t bytes) { return std::countr_zero(bytes) - std::countr_zero(smallest_mtu) + 1; }

}  // namespace

CompletionQueue::CompletionQueue(std::shared_ptr<Adapter> adapter, std::size_t entries)
    : adapter_(std::move(adapter)), channel_(library().create_comp_channel(adapter_->context())) {
  if (channel_ == nullptr) fail_with_errno("ibv_create_comp_channel");
  const auto most = static_cast<std::size_t>(std::max(adapter_->attributes().max_completions, 1));
  queue_ = library().create_cq(adapter_->context(), static_cast<int>(std::min(entries, most)), nullptr, channel_, 0);
  if (queue_ == nullptr) {
    const int error = errno;
    library().destroy_comp_channel(channel_);
    fail_with_errno(error, "ibv_create_cq");
  }
}

CompletionQueue::~CompletionQueue() {
  acknowledge();
  library().destroy_cq(queue_);
  library().destroy_comp_channel(channel_);
}

void CompletionQueue::reserve(std::size_t entries) {
  if (entries <= static_cast<std::size_t>(queue_->entries)) return;
  const auto most = static_cast<std::size_t>(adapter_->attributes().max_completions);
  if (entries > most) {
    throw Failure(FailureCode::unsupported, "so many paths need a completion queue of " + std::to_string(entries) +
                                                " entries, and " + adapter_->port().device + " has at most " +
                                                std::to_string(most) + ": use fewer flows");
  }
  const std::size_t wanted = std::min(most, std::max(entries, 2 * static_cast<std::size_t>(queue_->entries)));
  if (const int error = library().resize_cq(queue_, static_cast<int>(wanted))) {
    fail_with_errno(std::abs(error), "ibv_resize_cq",
                    "so many paths need a completion queue of " + std::to_string(entries) + " entries, it has " +
                        std::to_string(queue_->entries) + " and not every adapter resizes it: use fewer flows");
  }
}

void CompletionQueue::acknowledge() {
  if (unacknowledged_ > 0) library().ack_cq_events(queue_, unacknowledged_);
  unacknowledged_ = 0;
}

bool CompletionQueue::refuse_sleeping() {
  if (errno == EINTR || errno == EAGAIN) return false;
  fail_with_errno("ibv_get_cq_event");
}

void CompletionQueue::clear_event() {
  pollfd event{descriptor(), POLLIN, 0};
  constexpr timespec at_once{0, 0};
  if (ppoll(&event, 1, &at_once, nullptr) > 0) sleep();
}

void CompletionQueue::fail_polling() { throw Failure(FailureCode::error, "ibv_poll_cq failed: see the kernel's log"); }

std::string QueuePairAddress::text() const {
  std::ostringstream text;
  text << number << ' ' << first_packet << ' ' << lid << ' ' << mtu << ' ' << gid_text(gid) << ' ' << reads << ' '
       << memory << ' ' << memory_key << ' ' << port << ' ' << roce_version;
  return text.str();
}

QueuePairAddress QueuePairAddress::parse(std::string_view text) {
  std::istringstream fields{std::string(text)};
  QueuePairAddress address;
  std::string gid;
  fields >> address.number >> address.first_packet >> address.lid >> address.mtu >> gid >> address.reads >>
      address.memory >> address.memory_key >> address.port >> address.roce_version;
  const auto parsed = parse_gid(gid);
  if (!fields || !parsed) {
    throw Failure(FailureCode::error,
                  "the peer told an address of a queue pair that is none: '" + std::string(text) + "'");
  }
  address.gid = *parsed;
  return address;
}

QueuePair::QueuePair(std::shared_ptr<Adapter> adapter, verbs::Service service, CompletionQueue& sends,
                     CompletionQueue& receives, std::size_t send_requests, std::size_t receive_requests,
                     const RdmaParameters& parameters, std::uint32_t key)
    : adapter_(std::move(adapter)), parameters_(parameters), first_packet_(key & 0xffffffU) {
  // Adapters refuse more inline than they can, and do not tell what they can: ask for less until one is given.
  inline_bytes_ = parameters.inline_bytes;
  while (pair_ == nullptr) {
    verbs::QueuePairSetup setup{};
    setup.send_queue = sends.get();
    setup.receive_queue = receives.get();
    setup.service = service;
    setup.capacity = {.send_requests = static_cast<std::uint32_t>(send_requests),
                      .receive_requests = static_cast<std::uint32_t>(receive_requests),
                      .send_segments = 1,
                      .receive_segments = 1,
                      .inline_bytes = static_cast<std::uint32_t>(inline_bytes_)};
    pair_ = library().create_qp(adapter_->domain(), &setup);
    const int error = errno;
    if (pair_ != nullptr) {
      inline_bytes_ = std::min<std::size_t>(setup.capacity.inline_bytes, inline_bytes_);
    } else if (error != EINVAL && error != ENOMEM) {  // no matter of how much was asked for
      fail_with_errno(error, "ibv_create_qp");
    } else if (inline_bytes_ == 0) {
      fail_with_errno(
          error, "ibv_create_qp",
          "the adapter refuses " + std::to_string(send_requests) + " requests, or has no queue pair left (it has " +
              std::to_string(adapter_->attributes().max_queue_pairs) + "): take a smaller depth or number of flows");
    } else {
      inline_bytes_ = std::min(inline_bytes_ - 1, inline_bytes_ / 4 * 3);
    }
  }
  verbs::QueuePairAttributes attributes{};
  attributes.state = verbs::State::init;
  attributes.port = static_cast<std::uint8_t>(adapter_->port().number);
  if (service == verbs::Service::datagram) {
    attributes.datagram_key = datagram_key;
    modify(attributes, verbs::set_state | verbs::set_partition | verbs::set_port | verbs::set_datagram_key, "INIT");
  } else if (adapter_->port().is_iwarp) {  // it has no partitions
    attributes.access = verbs::access_remote_write | verbs::access_remote_read;
    modify(attributes, verbs::set_state | verbs::set_port | verbs::set_access, "INIT");
  } else {
    attributes.access = verbs::access_remote_write | verbs::access_remote_read | adapter_->atomic_access();
    modify(attributes, verbs::set_state | verbs::set_partition | verbs::set_port | verbs::set_access, "INIT");
  }
}

QueuePair::~QueuePair() {
  if (pair_ != nullptr) library().destroy_qp(pair_);
}

QueuePairAddress QueuePair::address() const {
  return {.number = pair_->number,
          .first_packet = first_packet_,
          .lid = adapter_->port_attributes().lid,
          .mtu = std::min(adapter_->mtu(), parameters_.mtu),
          .gid = adapter_->port().gid,
          .reads = adapter_->reads_in(),
          .roce_version = adapter_->port().roce_version};
}

verbs::Address QueuePair::way_to(const QueuePairAddress& peer) const {
  const RdmaPort& own = adapter_->port();
  if (own.roce_version != peer.roce_version) {
    const auto spoken = [](int version) { return version == 0 ? "no RoCE" : "RoCE v" + std::to_string(version); };
    throw Failure(FailureCode::unreachable, "device " + own.device + " speaks " + spoken(own.roce_version) +
                                                " by its address (GID) " + std::to_string(own.gid_index) +
                                                ", and the peer " + spoken(peer.roce_version) +
                                                ": name addresses of one version in the testbed (rdma.gid_index)");
  }
  verbs::Address way{};
  way.port = static_cast<std::uint8_t>(adapter_->port().number);
  way.service_level = static_cast<std::uint8_t>(parameters_.service_level);
  way.lid = peer.lid;
  if (adapter_->port().is_ethernet || peer.lid == 0) {
    constexpr std::uint8_t hops = 64;
    way.has_route = 1;
    way.route = {.to = peer.gid,
                 .flow_label = 0,
                 .gid_index = static_cast<std::uint8_t>(adapter_->port().gid_index),
                 .hop_limit = hops,
                 .traffic_class = static_cast<std::uint8_t>(parameters_.traffic_class)};
  }
  return way;
}

void QueuePair::connect(const QueuePairAddress& peer) {
  constexpr std::uint8_t shortest_receiver_wait = 1;  // 10 us
  constexpr std::uint8_t until_the_receiver_is_ready = 7;
  const auto reads = static_cast<std::uint8_t>(adapter_->reads_in());
  const auto reads_out = static_cast<std::uint8_t>(std::clamp(peer.reads, 1, adapter_->reads_out()));
  verbs::QueuePairAttributes attributes{};
  attributes.state = verbs::State::ready_to_receive;
  attributes.address = way_to(peer);
  path_mtu_ = possible_mtu(std::min(address().mtu, peer.mtu));
  attributes.path_mtu = mtu_number(path_mtu_);
  attributes.peer = peer.number;
  attributes.receive_number = peer.first_packet;
  attributes.reads_in = reads;
  attributes.receiver_timer = shortest_receiver_wait;
  modify(attributes,
         verbs::set_state | verbs::set_address | verbs::set_path_mtu | verbs::set_peer | verbs::set_receive_number |
             verbs::set_reads_in | verbs::set_receiver_timer,
         "RTR");
  attributes = {};
  attributes.state = verbs::State::ready_to_send;
  attributes.timeout = static_cast<std::uint8_t>(parameters_.timeout);
  attributes.retries = static_cast<std::uint8_t>(parameters_.retry_count);
  attributes.receiver_retries = until_the_receiver_is_ready;
  attributes.send_number = first_packet_;
  attributes.reads_out = reads_out;
  modify(attributes,
         verbs::set_state | verbs::set_timeout | verbs::set_retries | verbs::set_receiver_retries |
             verbs::set_send_number | verbs::set_reads_out,
         "RTS");
}

void QueuePair::activate() {
  verbs::QueuePairAttributes attributes{};
  attributes.state = verbs::State::ready_to_receive;
  modify(attributes, verbs::set_state, "RTR");
  attributes.state = verbs::State::ready_to_send;
  attributes.send_number = first_packet_;
  modify(attributes, verbs::set_state | verbs::set_send_number, "RTS");
}

void QueuePair::stop() const {
  verbs::QueuePairAttributes attributes{};
  attributes.state = verbs::State::error;
  library().modify_qp(pair_, &attributes, verbs::set_state);
}

void QueuePair::modify(verbs::QueuePairAttributes& attributes, int what, const char* state) {
  const int error = library().modify_qp(pair_, &attributes, what);
  if (error == 0) return;
  if (attributes.state == verbs::State::init) library().destroy_qp(std::exchange(pair_, nullptr));
  fail_with_errno(error, std::string("ibv_modify_qp to ") + state,
                  "check the addresses at both ends, their routes, and that the adapter takes these parameters");
}

}  // namespace fabricbench

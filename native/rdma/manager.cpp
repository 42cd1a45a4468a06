#include "rdma/manager.hpp"

#include <fcntl.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/clock.hpp"
#include "base/failure.hpp"
#include "base/interface.hpp"
#include "base/socket.hpp"
#include "core/watchdog.hpp"

namespace fabricbench {
namespace {

using verbs::manager_library;

constexpr std::uint64_t ns_per_ms = 1'000'000;
// A connection over a link that works takes milliseconds, one whose first packet is lost a second.
constexpr std::uint64_t connecting_bound_ns = 2'500 * ns_per_ms;
// A peer may have others to meet first.
constexpr std::uint64_t bound_of_each_other_ns = 50 * ns_per_ms;
constexpr int most_attempts = 8;

sockaddr* generic(sockaddr_in& address) { return reinterpret_cast<sockaddr*>(&address); }

std::string milliseconds(std::uint64_t ns) { return std::to_string(ns / ns_per_ms) + " ms"; }

int milliseconds_until(std::uint64_t deadline_ns) {
  const std::uint64_t now = Clock::now();
  return now >= deadline_ns ? 0 : static_cast<int>((deadline_ns - now) / ns_per_ms) + 1;
}

/// Of a queue pair of RoCE the standard lets an acknowledgement take up to four times its timeout.
std::uint64_t patience_of(const RdmaParameters& parameters) {
  constexpr std::uint64_t times = 2;
  constexpr std::uint64_t unit_ns = 4096;
  return times * (unit_ns << parameters.timeout) * (parameters.retry_count + 1);
}

}  // namespace

std::optional<Introduction> Introduction::read(const verbs::ConnectionParameters& parameters) {
  Introduction told;
  if (parameters.data == nullptr || parameters.data_bytes < sizeof told) return std::nullopt;
  std::memcpy(&told, parameters.data, sizeof told);
  return told.magic == sign ? std::optional(told) : std::nullopt;
}

ConnectionManager::ConnectionManager(std::string device, std::uint32_t address)
    : device_(std::move(device)), address_(address), channel_(manager_library().create_event_channel()) {
  if (channel_ == nullptr) {
    fail_with_errno(
        "rdma_create_event_channel",
        "the connections of " + device_ +
            " need the kernel's connection manager: load its module rdma_ucm (`modprobe rdma_ucm`), and let "
            "this user read and write /dev/infiniband/rdma_cm");
  }
  // What poll(2) told of may be none that the library shows: it must not wait for the next.
  fcntl(channel_->descriptor, F_SETFL, fcntl(channel_->descriptor, F_GETFL) | O_NONBLOCK);
  try {
    listen();
  } catch (...) {
    if (listener_ != nullptr) manager_library().destroy_id(listener_);
    manager_library().destroy_event_channel(channel_);
    throw;
  }
}

ConnectionManager::~ConnectionManager() {
  manager_library().destroy_id(listener_);
  manager_library().destroy_event_channel(channel_);
}

void ConnectionManager::listen() {
  constexpr int backlog = 256;
  for (int attempt = 1;; ++attempt) {
    if (manager_library().create_id(channel_, &listener_, nullptr, verbs::port_space_of_streams) != 0) {
      listener_ = nullptr;
      fail_with_errno("rdma_create_id");
    }
    sockaddr_in own = socket_address(address_, 0);
    if (manager_library().bind_addr(listener_, generic(own)) != 0) {
      fail_with_errno("rdma_bind_addr(" + address_text(address_) + ")",
                      "does this address belong to the interface of " + device_ + "?");
    }
    refuse_other_device(*listener_);
    if (manager_library().listen(listener_, backlog) == 0) break;
    // The port that it chose may be one of a TCP socket, which it does not know.
    const int error = errno;
    manager_library().destroy_id(std::exchange(listener_, nullptr));
    if (error != EADDRINUSE || attempt == most_attempts) {
      fail_with_errno(error, "rdma_listen(" + address_text(address_) + ")");
    }
  }
  port_ = ntohs(manager_library().get_src_port(listener_));
}

void ConnectionManager::refuse_other_device(const verbs::Identifier& identifier) const {
  if (identifier.verbs == nullptr) return;
  const std::string found = verbs::library().get_device_name(identifier.verbs->device);
  if (found == device_) return;
  throw Failure(FailureCode::unreachable, "the connection manager takes " + found + " for address " +
                                              address_text(address_) + ", and the fabric's device is " + device_ +
                                              ": name the device of that address in the testbed (rdma.device), or "
                                              "the interface of this one");
}

bool ConnectionManager::serve(std::uint64_t deadline_ns, const std::function<bool()>& is_done, int other_descriptor) {
  for (;;) {
    while (take_event()) continue;
    if (is_done()) return true;
    const int wait_ms = milliseconds_until(deadline_ns);
    if (wait_ms == 0) return false;
    std::array entries{pollfd{channel_->descriptor, POLLIN, 0}, pollfd{other_descriptor, POLLIN, 0}};
    if (poll(entries.data(), entries.size(), wait_ms) < 0 && errno != EINTR) fail_with_errno("poll(rdma_cm)");
  }
}

bool ConnectionManager::take_event() {
  verbs::Event* told = nullptr;
  if (manager_library().get_cm_event(channel_, &told) != 0) {
    if (errno == EAGAIN || errno == EINTR) return false;
    fail_with_errno("rdma_get_cm_event");
  }
  // An identifier can be destroyed only when all its events are acknowledged: what is needed of them is copied.
  const verbs::Event event = *told;
  std::array<std::byte, 256> data{};
  verbs::ConnectionParameters parameters = event.parameters;
  const bool tells_data =
      event.kind == verbs::EventKind::connect_request || event.kind == verbs::EventKind::established;
  if (tells_data && parameters.data != nullptr) std::memcpy(data.data(), parameters.data, parameters.data_bytes);
  parameters.data = tells_data && parameters.data != nullptr ? data.data() : nullptr;
  manager_library().ack_cm_event(told);
  if (event.kind == verbs::EventKind::connect_request) {
    answer(event.identifier, parameters);
  } else if (event.identifier->user != nullptr) {
    static_cast<ManagedConnection*>(event.identifier->user)->note(event.kind, event.status, parameters);
  }
  return true;
}

void ConnectionManager::answer(verbs::Identifier* identifier, const verbs::ConnectionParameters& parameters) {
  const auto peer = Introduction::read(parameters);
  const auto expected = peer ? expected_.find(peer->secret) : expected_.end();
  if (expected == expected_.end()) {  // a stranger, or a peer whose path we have given up
    manager_library().reject(identifier, nullptr, 0);
    manager_library().destroy_id(identifier);
    return;
  }
  ManagedConnection& connection = *expected->second;
  expected_.erase(expected);
  connection.accept(identifier, *peer);
}

ManagedConnection::ManagedConnection(const std::shared_ptr<Adapter>& adapter, int peer_rank, const Secret& secret,
                                     bool is_first, const RdmaParameters& parameters)
    : adapter_(adapter),
      manager_(adapter->manager()),
      secret_(secret),
      is_first_(is_first),
      patience_ns_(patience_of(parameters)),
      memory_(adapter->allocate(sizeof(Keepalive), MemoryKind::plain)),
      keepalive_(new (memory_.data()) Keepalive),
      peer_text_("rank " + std::to_string(peer_rank)) {}

ManagedConnection::~ManagedConnection() {
  if (!is_first_) manager_.remove(secret_);
  release();
}

void ManagedConnection::release() {
  if (identifier_ != nullptr) manager_library().destroy_id(std::exchange(identifier_, nullptr));
}

void ManagedConnection::lead_to(const QueuePair& pair) {
  pair_number_ = pair.get()->number;
  if (!is_first_) manager_.add(secret_, *this);
}

Introduction ManagedConnection::introduction() const {
  return {.address = reinterpret_cast<std::uintptr_t>(&keepalive_->here),
          .key = adapter_->region_of(reinterpret_cast<const std::byte*>(keepalive_)).remote_key,
          .secret = secret_};
}

verbs::ConnectionParameters ManagedConnection::parameters_of(const Introduction& own) const {
  constexpr int most_reads = 16;
  constexpr std::uint8_t retries = 7;
  return {.data = &own,
          .data_bytes = sizeof own,
          .reads_in = static_cast<std::uint8_t>(std::clamp(adapter_->attributes().max_reads_in, 1, most_reads)),
          .reads_out = static_cast<std::uint8_t>(std::clamp(adapter_->attributes().max_reads_out, 1, most_reads)),
          .flow_control = 1,
          .retries = retries,
          .receiver_retries = retries,
          .has_shared_receive_queue = 0,
          .pair_number = pair_number_};
}

void ManagedConnection::meet(const QueuePairAddress& peer) {
  if (peer.port == 0) {
    throw Failure(FailureCode::unsupported, "our device " + manager_.device() + " speaks iWARP and that of " +
                                                peer_text_ + " does not: take devices of one kind at both ends");
  }
  const std::uint32_t address = ipv4_of(peer.gid);
  peer_text_ += " at " + SocketAddress(socket_address(address, peer.port)).text();
  if (is_first_) {
    connect(socket_address(address, peer.port));
  } else {
    wait_for([this] { return stage_ == Stage::established; }, "connected");
  }
}

void ManagedConnection::connect(const sockaddr_in& peer) {
  const std::uint64_t deadline_ns = Clock::now() + connecting_bound_ns;
  for (int attempt = 1;; ++attempt) {
    release();
    stage_ = Stage::none;
    sockaddr_in from = socket_address(manager_.address(), 0);
    sockaddr_in to = peer;
    if (manager_library().create_id(manager_.channel(), &identifier_, this, verbs::port_space_of_streams) != 0) {
      identifier_ = nullptr;
      fail_call(errno, "rdma_create_id");
    }
    if (manager_library().resolve_addr(identifier_, generic(from), generic(to), milliseconds_until(deadline_ns)) != 0)
      fail_call(errno, "rdma_resolve_addr");
    reach(Stage::addressed, deadline_ns);
    manager_.refuse_other_device(*identifier_);
    if (manager_library().resolve_route(identifier_, milliseconds_until(deadline_ns)) != 0)
      fail_call(errno, "rdma_resolve_route");
    reach(Stage::routed, deadline_ns);
    const Introduction own = introduction();
    verbs::ConnectionParameters parameters = parameters_of(own);
    int error = 0;
    {
      // Soft iWARP connects its socket in this very call, for minutes where nobody answers.
      const Watchdog interrupting(std::max(1, milliseconds_until(deadline_ns)) / 1e3);
      if (manager_library().connect(identifier_, &parameters) != 0) error = errno;
    }
    if (error == 0) break;
    if (Clock::now() >= deadline_ns) fail_late(FailureCode::unreachable, "answered our request to connect");
    // The port that it chose may be one of a TCP socket, which it does not know.
    const bool is_passing = error == EADDRINUSE || error == EADDRNOTAVAIL || error == EINTR;
    if (!is_passing || attempt == most_attempts) fail_call(error, "rdma_connect");
  }
  reach(Stage::established, deadline_ns);
}

void ManagedConnection::reach(Stage stage, std::uint64_t deadline_ns) {
  if (!manager_.serve(deadline_ns, [&] { return stage_ == stage || refused_; })) {
    fail_late(FailureCode::unreachable, "answered our request to connect");
  }
  if (refused_) fail_event(*refused_, status_);
}

void ManagedConnection::wait_for(const std::function<bool()>& is_done, const char* what, int other_descriptor) {
  const std::uint64_t deadline_ns =
      Clock::now() + connecting_bound_ns + manager_.still_expected() * bound_of_each_other_ns;
  if (!manager_.serve(deadline_ns, [&] { return is_done() || refused_; }, other_descriptor))
    fail_late(FailureCode::timeout, what);
  if (refused_ && !is_done()) fail_event(*refused_, status_);
}

void ManagedConnection::accept(verbs::Identifier* identifier, const Introduction& peer) {
  identifier_ = identifier;
  identifier_->user = this;
  peer_address_ = peer.address;
  peer_key_ = peer.key;
  const Introduction own = introduction();
  verbs::ConnectionParameters parameters = parameters_of(own);
  if (manager_library().accept(identifier_, &parameters) == 0) return;
  // Whoever serves events may wait for another connection: it is ours that has failed.
  status_ = -errno;
  refused_ = verbs::EventKind::connect_error;
}

void ManagedConnection::note(verbs::EventKind kind, int status, const verbs::ConnectionParameters& parameters) {
  switch (kind) {
    case verbs::EventKind::address_resolved:
      stage_ = Stage::addressed;
      return;
    case verbs::EventKind::route_resolved:
      stage_ = Stage::routed;
      return;
    case verbs::EventKind::established:
      if (is_first_) {
        const auto peer = Introduction::read(parameters);
        if (!peer || peer->secret != secret_) {
          refused_ = verbs::EventKind::rejected;  // a stranger listens there
          return;
        }
        peer_address_ = peer->address;
        peer_key_ = peer->key;
      }
      stage_ = Stage::established;
      return;
    case verbs::EventKind::time_wait_over:
    case verbs::EventKind::connect_response:
      return;
    default:
      if (refused_) return;
      refused_ = kind;
      status_ = status;
  }
}

void ManagedConnection::refuse_closed() {
  constexpr std::uint64_t moment_ns = 100 * ns_per_ms;
  manager_.serve(Clock::now() + moment_ns, [this] { return refused_.has_value(); });
  if (refused_) fail_event(*refused_, status_);
}

verbs::Segment ManagedConnection::no_memory() const {
  return {reinterpret_cast<std::uintptr_t>(keepalive_), 0,
          adapter_->region_of(reinterpret_cast<const std::byte*>(keepalive_)).local_key};
}

verbs::SendRequest ManagedConnection::question(verbs::Segment& memory) {
  keepalive_->answer = 0;
  memory = {reinterpret_cast<std::uintptr_t>(&keepalive_->answer), sizeof keepalive_->answer,
            adapter_->region_of(memory_.data()).local_key};
  verbs::SendRequest request;
  request.segments = &memory;
  request.segment_count = 1;
  request.operation = verbs::Operation::read;
  request.remote = {.address = peer_address_, .key = peer_key_};
  return request;
}

bool ManagedConnection::has_answer() const {
  return __atomic_load_n(&keepalive_->answer, __ATOMIC_ACQUIRE) == Introduction::sign;
}

void ManagedConnection::fail_unanswered() const {
  throw Failure(FailureCode::unreachable,
                "the peer's adapter has not answered a read for " + milliseconds(patience_ns_) +
                    " over the iWARP connection of " + manager_.device() + " (" + address_text(manager_.address()) +
                    ") to " + peer_text_ +
                    ": is the link up and the peer alive, and do `timeout` and `retry_count` suit the network?");
}

void ManagedConnection::fail_event(verbs::EventKind kind, int status) const {
  const bool has_errno = status < 0 || kind == verbs::EventKind::unreachable || kind == verbs::EventKind::connect_error;
  std::string told = status == 0 ? "" : ", status " + std::to_string(status);
  if (status != 0 && has_errno) told += ", " + std::string(std::strerror(std::abs(status)));
  const FailureCode code = kind == verbs::EventKind::device_removal ? FailureCode::error : FailureCode::unreachable;
  throw Failure(code, "the iWARP connection of " + manager_.device() + " (" + address_text(manager_.address()) +
                          ") to " + peer_text_ + " failed (" + std::string(verbs::name_of(kind)) + told +
                          "): " + std::string(verbs::meaning_of(kind)));
}

void ManagedConnection::fail_call(int error, const char* call) const {
  fail_with_errno(error, std::string(call) + " of " + manager_.device() + " (" + address_text(manager_.address()) +
                             ") to " + peer_text_);
}

void ManagedConnection::fail_late(FailureCode code, const std::string& what) const {
  throw Failure(code, peer_text_ + " has not " + what + " over iWARP in " + milliseconds(connecting_bound_ns) +
                          " (our device is " + manager_.device() + " at " +
                          SocketAddress(socket_address(manager_.address(), manager_.port())).text() +
                          "): is the link up, the peer alive, and no firewall between them?");
}

}  // namespace fabricbench

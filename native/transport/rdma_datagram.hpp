// Layer rdma by unreliable datagrams: what is lost stays lost, and a message is one packet. Messages are copied into
// and out of rings of buffers that the path owns: whoever sends writes the next number into the same memory at once,
// and receives have to be posted before anybody knows what will come.
#pragma once

#include <cstring>
#include <memory>

#include "rdma/queue_pair.hpp"
#include "transport/device.hpp"
#include "transport/rdma_parameters.hpp"
#include "transport/waiting.hpp"

namespace fabricbench {

/// The part of a datagram path's life that is not timed: its queue pair, the rings, and how the peer is reached.
class DatagramEnd {
 public:
  DatagramEnd(std::shared_ptr<Adapter> adapter, const Site& site, const RdmaParameters& parameters,
              std::size_t receive_slots)
      : adapter_(std::move(adapter)),
        mtu_(std::min(adapter_->mtu(), parameters.mtu)),
        slot_bytes_((route_bytes + mtu_ + 63) / 64 * 64),
        memory_(adapter_->allocate((send_slots + receive_slots) * slot_bytes_, MemoryKind::plain)),
        local_key_(adapter_->region_of(memory_.data()).local_key),
        sends_(adapter_, send_slots),
        receives_(adapter_, receive_slots),
        pair_(adapter_, verbs::Service::datagram, sends_, receives_, send_slots, receive_slots, parameters,
              site.token) {
    for (std::size_t slot = 0; slot < receive_slots; ++slot) post_receive(slot);
    pair_.activate();
  }
  ~DatagramEnd() {
    pair_.stop();
    if (way_ != nullptr) verbs::library().destroy_ah(way_);
  }
  DatagramEnd(const DatagramEnd&) = delete;
  DatagramEnd& operator=(const DatagramEnd&) = delete;

  std::size_t mtu() const { return mtu_; }
  RdmaAttachment attachment() const {
    RdmaAttachment own = adapter_->attachment();
    own.path_mtu = mtu_;
    own.inline_bytes = pair_.inline_bytes();
    return own;
  }
  std::string address() const { return pair_.address().text(); }
  void meet(std::string_view text) {
    const QueuePairAddress peer = QueuePairAddress::parse(text);
    verbs::Address way = pair_.way_to(peer);
    way_ = verbs::library().create_ah(adapter_->domain(), &way);
    if (way_ == nullptr) {
      fail_with_errno("ibv_create_ah", "is there a route to the peer, and does it answer to ARP?");
    }
    peer_number_ = peer.number;
    mtu_ = std::min(mtu_, peer.mtu);
  }
  const Adapter& adapter() const { return *adapter_; }
  CompletionQueue& receives() { return receives_; }
  int descriptor() const { return receives_.descriptor(); }

  /// Send a message if there is a free slot.
  bool try_send(std::span<const std::byte> message) {
    if (sent_ - sent_done_ == send_slots && !take_sent()) return false;
    std::byte* const slot = slot_at(receive_slots() + sent_ % send_slots);
    std::memcpy(slot, message.data(), message.size());
    verbs::Segment segment{reinterpret_cast<std::uintptr_t>(slot), static_cast<std::uint32_t>(message.size()),
                           local_key_};
    verbs::SendRequest request;
    request.id = ++sent_;
    request.segments = &segment;
    request.segment_count = 1;
    request.operation = verbs::Operation::send;
    if (sent_ % signal_interval == 0) request.flags = verbs::send_signaled;
    if (message.size() <= pair_.inline_bytes()) request.flags |= verbs::send_inline;
    request.datagram = {.to = way_, .queue_pair = peer_number_, .key = datagram_key};
    pair_.post(request);
    return true;
  }

  /// Take a message that has come: its size, or 0.
  std::size_t take(std::span<std::byte> message) {
    if (next_ == come_.size()) {
      come_ = receives_.poll();
      next_ = 0;
      if (come_.empty()) return 0;
    }
    const verbs::Completion& one = come_[next_++];
    if (one.status != verbs::Status::success) [[unlikely]]
      verbs::fail_with_status(one.status, "a datagram");
    const std::size_t payload = one.bytes > route_bytes ? one.bytes - route_bytes : 0;
    const std::size_t size = std::min(payload, message.size());
    std::memcpy(message.data(), slot_at(one.id) + route_bytes, size);
    post_receive(one.id);
    return size;
  }

 private:
  static constexpr std::size_t route_bytes = 40;  // before each message, whether it came with a route (GRH) or not
  static constexpr std::size_t send_slots = 128;
  static constexpr std::size_t signal_interval = 32;

  std::size_t receive_slots() const { return memory_.size() / slot_bytes_ - send_slots; }
  std::byte* slot_at(std::size_t slot) { return memory_.data() + slot * slot_bytes_; }
  void post_receive(std::size_t slot) {
    verbs::Segment segment{reinterpret_cast<std::uintptr_t>(slot_at(slot)), static_cast<std::uint32_t>(slot_bytes_),
                           local_key_};
    verbs::ReceiveRequest request{.id = slot, .segments = &segment, .segment_count = 1};
    pair_.post(request);
  }
  bool take_sent() {
    for (const verbs::Completion& one : sends_.poll()) {
      if (one.status != verbs::Status::success) verbs::fail_with_status(one.status, "a datagram");
      sent_done_ = one.id;
    }
    return sent_ - sent_done_ < send_slots;
  }

  std::shared_ptr<Adapter> adapter_;
  std::size_t mtu_;
  std::size_t slot_bytes_;
  MessageBuffer memory_;  // first what is received into, then what is sent from; it outlives the queue pair
  std::uint32_t local_key_;
  CompletionQueue sends_;
  CompletionQueue receives_;
  QueuePair pair_;
  verbs::AddressHandle* way_ = nullptr;
  std::uint32_t peer_number_ = 0;
  std::uint64_t sent_ = 0;
  std::uint64_t sent_done_ = 0;
  std::span<const verbs::Completion> come_{};
  std::size_t next_ = 0;
};

template <Receive mode>
class RdmaDatagram {
 public:
  static constexpr Traits traits{.is_reliable = false,
                                 .is_ordered = false,
                                 .framing = Framing::message,
                                 .smallest_message = sizeof(DatagramHeader)};

  explicit RdmaDatagram(std::unique_ptr<DatagramEnd> end) : end_(std::move(end)) {}
  void register_once(std::span<std::byte> memory) const { end_->adapter().register_once(memory); }
  std::size_t largest_message() const { return end_->mtu(); }
  RdmaAttachment attachment() const { return end_->attachment(); }
  std::string address() const { return end_->address(); }
  void meet(std::string_view peer) { end_->meet(peer); }
  void set_bound(double seconds) { bound_ns_ = seconds_to_ns(seconds); }

  void send(std::span<const std::byte> message) {
    if (end_->try_send(message)) [[likely]]
      return;
    send_some("ibv_post_send", [&]() -> ssize_t {
      if (end_->try_send(message)) return static_cast<ssize_t>(message.size());
      errno = ENOBUFS;
      return -1;
    });
  }
  int descriptor() const { return end_->descriptor(); }
  int sending_descriptor() const { return end_->descriptor(); }
  bool has_full_interface() const { return is_full_; }  // the send queue gives no notice that poll(2) tells

  std::size_t try_send(std::span<const std::byte> message) {
    is_full_ = !end_->try_send(message);
    return is_full_ ? 0 : message.size();
  }

  /// Where nothing has come, the next message is to wake who watches the descriptor.
  std::size_t try_receive(std::span<std::byte> message) {
    if (const std::size_t size = take(message)) return size;
    end_->receives().clear_event();
    end_->receives().arm();
    return take(message);
  }

  bool receive(std::span<std::byte> message) {
    return wait_for<mode>(bound_ns_, "ibv_get_cq_event", [&](int flags) -> ssize_t {
             for (;;) {
               if (const std::size_t size = take(message)) return static_cast<ssize_t>(size);
               if (flags == MSG_DONTWAIT) {
                 if (yields_) sched_yield();
                 errno = EAGAIN;
                 return -1;
               }
               end_->receives().arm();
               if (const std::size_t size = take(message)) return static_cast<ssize_t>(size);
               if (!end_->receives().sleep()) {
                 errno = EINTR;
                 return -1;
               }
             }
           }) > 0;
  }

 private:
  /// What is shorter than a header was sent by strangers.
  std::size_t take(std::span<std::byte> message) {
    std::size_t size = end_->take(message);
    while (size > 0 && size < sizeof(DatagramHeader)) [[unlikely]]
      size = end_->take(message);
    return size;
  }

  std::unique_ptr<DatagramEnd> end_;
  std::uint64_t bound_ns_ = 0;
  bool is_full_ = false;
  bool yields_ = has_one_processor();
};

static_assert(PolledTransport<RdmaDatagram<Receive::blocking>> && PolledTransport<RdmaDatagram<Receive::polling>>);

/// Through unreliable datagrams.
class RdmaDatagramDevice : public InterfaceTraffic {
 public:
  static constexpr Layer layer = Layer::rdma;
  static constexpr std::string_view door = "datagram";
  static constexpr bool has_flows = true;
  static constexpr std::array receives{Receive::blocking, Receive::polling};
  template <Receive way>
  using Path = RdmaDatagram<way>;

  explicit RdmaDatagramDevice(const Attachment& attachment)
      : attachment_(attachment), adapter_(Adapter::open(attachment)) {
    adapter_->need_datagrams();
  }
  MessageBuffer allocate(std::size_t bytes, MemoryKind kind) { return adapter_->allocate(bytes, kind); }
  void forget_events() { adapter_->forget_events(); }
  void refuse_failed() { adapter_->refuse_failed(); }
  template <Receive way>
  Path<way> open(const Site& site, const PlanProbe& probe) {
    return Path<way>(std::make_unique<DatagramEnd>(adapter_, site, rdma_parameters(probe), receive_slots(site)));
  }

 private:
  /// Room for a burst while the receiver does not run, less for each where there may be many paths.
  std::size_t receive_slots(const Site& site) const {
    constexpr std::size_t of_all = 4096;
    return std::clamp<std::size_t>(part_of_path(of_all, attachment_, site), 64, 512);
  }

  Attachment attachment_;
  std::shared_ptr<Adapter> adapter_;
};

static_assert(Device<RdmaDatagramDevice>);

}  // namespace fabricbench

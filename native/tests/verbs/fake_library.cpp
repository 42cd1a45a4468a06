#include "verbs/fake_library.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <deque>
#include <memory>
#include <set>
#include <utility>
#include <vector>

namespace fabricbench::verbs {

struct Device {};
struct ProtectionDomain {};
struct AddressHandle {};

namespace fake {
namespace {

constexpr std::uint32_t first_key = 0x100;

struct Queue : CompletionQueue {
  std::deque<Completion> complete;
  bool is_armed = false;
};

struct Posted {
  std::uint64_t id;
  Segment segment;
};

struct Pair : QueuePair {
  State state = State::init;
  std::uint32_t peer = 0;
  Capacity capacity{};
  std::deque<Posted> receives;
  std::deque<SendRequest> stalled;  // for want of a receive, and what follows it
  std::deque<Segment> stalled_segments;
};

struct World {
  Ledger ledger;
  std::set<MemoryRegion*> regions;
  std::set<Queue*> queues;
  std::map<std::uint32_t, Pair*> pairs;
  std::vector<std::pair<Queue*, Completion>> held;
  std::uint32_t next_key = first_key;
  std::uint32_t next_pair = 1;
};
World& world() {
  static World all;
  return all;
}

void fault(const std::string& what) { world().ledger.faults.push_back(what); }

bool is_registered(std::uint64_t address, std::size_t bytes, std::uint32_t key, bool is_remote) {
  for (const MemoryRegion* region : world().regions) {
    const auto begin = reinterpret_cast<std::uintptr_t>(region->begin);
    if ((is_remote ? region->remote_key : region->local_key) != key) continue;
    return address >= begin && address + bytes <= begin + region->bytes;
  }
  return false;
}
bool check(const char* what, std::uint64_t address, std::size_t bytes, std::uint32_t key, bool is_remote) {
  if (bytes == 0 || is_registered(address, bytes, key, is_remote)) return true;
  fault(std::string(what) + " of " + std::to_string(bytes) + " bytes that are not registered");
  return false;
}

void put(Queue& queue, const Completion& one) {
  if (queue.complete.size() == static_cast<std::size_t>(queue.entries)) return fault("a completion queue overflows");
  queue.complete.push_back(one);
  if (!std::exchange(queue.is_armed, false)) return;
  const std::uint64_t event = 1;
  if (write(queue.channel->descriptor, &event, sizeof event) != sizeof event) fault("no event can be told");
}
void tell(CompletionQueue* of, std::uint64_t id, Status status, std::uint32_t bytes = 0) {
  auto& queue = *static_cast<Queue*>(of);
  Completion one{};
  one.id = id;
  one.status = status;
  one.bytes = bytes;
  if (world().ledger.is_held) {
    world().held.emplace_back(&queue, one);
  } else {
    put(queue, one);
  }
}

/// What was posted is given back, receives first: what failed comes after its consequences.
void break_off(Pair& pair, const SendRequest* failed) {
  if (pair.state == State::error) return;
  pair.state = State::error;
  for (const Posted& one : pair.receives) tell(pair.receive_queue, one.id, Status::flushed);
  pair.receives.clear();
  if (failed != nullptr) tell(pair.send_queue, failed->id, Status::retry_exceeded);
  for (const SendRequest& one : pair.stalled) tell(pair.send_queue, one.id, Status::flushed);
  pair.stalled.clear();
}

void* place(std::uint64_t address) { return reinterpret_cast<void*>(address); }

/// Carry out a request; false where the peer has no receive for it.
bool carry_out(Pair& pair, const SendRequest& request, const Segment& segment) {
  Pair& peer = *world().pairs.at(pair.peer);
  const bool takes_receive =
      request.operation == Operation::send || request.operation == Operation::write_with_immediate;
  if (takes_receive && peer.receives.empty()) return false;
  const auto bytes = request.segment_count == 0 ? 0 : segment.bytes;
  const bool is_inline = (request.flags & send_inline) != 0;
  if (is_inline && bytes > pair.capacity.inline_bytes) fault("more is inline than the queue pair takes");
  if (!is_inline) check("a request", segment.address, bytes, segment.local_key, false);
  switch (request.operation) {
    case Operation::write:
    case Operation::write_with_immediate:
      if (check("a write", request.remote.address, bytes, request.remote.key, true) && bytes > 0)
        std::memcpy(place(request.remote.address), place(segment.address), bytes);
      break;
    case Operation::read:
      if (check("a read", request.remote.address, bytes, request.remote.key, true))
        std::memcpy(place(segment.address), place(request.remote.address), bytes);
      break;
    case Operation::fetch_and_add:
      if (check("an addition", request.atomic.address, bytes, request.atomic.key, true)) {
        auto* const word = static_cast<std::uint64_t*>(place(request.atomic.address));
        *static_cast<std::uint64_t*>(place(segment.address)) = *word;
        *word += request.atomic.compare_or_add;
      }
      break;
    default:
      break;
  }
  if (takes_receive) {
    const Posted into = peer.receives.front();
    peer.receives.pop_front();
    if (request.operation == Operation::send && bytes > 0) {
      if (bytes > into.segment.bytes) fault("a message is longer than its receive");
      if (check("a receive", into.segment.address, bytes, into.segment.local_key, false))
        std::memcpy(place(into.segment.address), place(segment.address), bytes);
    }
    tell(peer.receive_queue, into.id, Status::success, bytes);
  }
  if ((request.flags & send_signaled) != 0) tell(pair.send_queue, request.id, Status::success);
  return true;
}

void go_on(Pair& pair) {
  while (!pair.stalled.empty() && carry_out(pair, pair.stalled.front(), pair.stalled_segments.front())) {
    pair.stalled.pop_front();
    pair.stalled_segments.pop_front();
  }
}

int post_send(QueuePair* of, SendRequest* request, SendRequest** /*refused*/) {
  auto& pair = *static_cast<Pair*>(of);
  for (; request != nullptr; request = request->next) {
    world().ledger.told[pair.number].flags.push_back(request->flags);
    const Segment segment = request->segment_count == 0 ? Segment{} : *request->segments;
    if (pair.state == State::error) {
      tell(pair.send_queue, request->id, Status::flushed);
    } else if (pair.state != State::ready_to_send) {
      fault("something is sent before the queue pair is ready");
    } else if (world().ledger.is_dead) {
      break_off(pair, request);
    } else if (!pair.stalled.empty() || !carry_out(pair, *request, segment)) {
      if (pair.stalled.empty()) ++world().ledger.not_ready;
      if (pair.stalled.size() == pair.capacity.send_requests) fault("a send queue overflows");
      pair.stalled.push_back(*request);
      pair.stalled_segments.push_back(segment);
    }
  }
  return 0;
}

int post_receive(QueuePair* of, ReceiveRequest* request, ReceiveRequest** /*refused*/) {
  auto& pair = *static_cast<Pair*>(of);
  for (; request != nullptr; request = request->next) {
    const Segment segment = request->segment_count == 0 ? Segment{} : *request->segments;
    if (pair.state == State::error) {
      tell(pair.receive_queue, request->id, Status::flushed);
      continue;
    }
    if (pair.receives.size() == pair.capacity.receive_requests) fault("a receive queue overflows");
    check("a posted receive", segment.address, segment.bytes, segment.local_key, false);
    pair.receives.push_back({request->id, segment});
  }
  const auto peer = world().pairs.find(pair.peer);
  if (peer != world().pairs.end() && peer->second->state == State::ready_to_send) go_on(*peer->second);
  return 0;
}

int poll(CompletionQueue* of, int most, Completion* into) {
  auto& queue = *static_cast<Queue*>(of);
  int count = 0;
  for (; count < most && !queue.complete.empty(); ++count) {
    into[count] = queue.complete.front();
    queue.complete.pop_front();
  }
  return count;
}

int notify(CompletionQueue* of, int /*only_solicited*/) {
  static_cast<Queue*>(of)->is_armed = true;
  return 0;
}

template <class Thing>
Thing* made(Thing* thing) {
  ++world().ledger.things;
  return thing;
}
template <class Thing>
int given_back(Thing* thing) {
  --world().ledger.things;
  delete thing;
  return 0;
}

}  // namespace

Ledger& ledger() { return world().ledger; }

static bool wants_atomics_in_vain(unsigned access) {
  return (access & access_remote_atomic) != 0 && !world().ledger.abilities.has_atomics;
}

void release() {
  for (const auto& [queue, one] : std::exchange(world().held, {})) put(*queue, one);
}

}  // namespace fake
}  // namespace fabricbench::verbs

// The functions of the library, by their names there.
using namespace fabricbench::verbs;
using fake::world;

extern "C" {

Device** ibv_get_device_list(int* count) {
  static Device device;
  *count = 1;
  return new Device*[2]{&device, nullptr};
}
void ibv_free_device_list(Device** list) { delete[] list; }
const char* ibv_get_device_name(Device* /*device*/) { return fake::device_name; }
Context* ibv_open_device(Device* device) {
  auto* const context = fake::made(new Context{});
  context->device = device;
  context->event_descriptor = eventfd(0, EFD_CLOEXEC);
  context->operations.poll = fake::poll;
  context->operations.notify = fake::notify;
  context->operations.post_send = fake::post_send;
  context->operations.post_receive = fake::post_receive;
  return context;
}
int ibv_close_device(Context* context) {
  close(context->event_descriptor);
  return fake::given_back(context);
}
int ibv_get_async_event(Context* context, AsyncEvent* event) {
  fake::Ledger& ledger = world().ledger;
  if ((fcntl(context->event_descriptor, F_GETFL) & O_NONBLOCK) == 0) fake::fault("who reads events would sleep");
  if (ledger.events.empty()) {
    errno = ledger.is_gone ? EIO : EAGAIN;
    return -1;
  }
  *event = ledger.events.front();
  ledger.events.pop_front();
  ++ledger.unacknowledged;
  return 0;
}
void ibv_ack_async_event(AsyncEvent* /*event*/) { --world().ledger.unacknowledged; }
int ibv_query_device(Context* /*context*/, DeviceAttributes* attributes) {
  *attributes = {};
  attributes->max_completions = fake::most_completions;
  attributes->max_reads_in = attributes->max_reads_out = 128;
  attributes->atomics = fake::world().ledger.abilities.has_atomics ? 1 : 0;
  return 0;
}
int ibv_query_port(Context* /*context*/, std::uint8_t /*port*/, PortAttributes* attributes) {
  *attributes = {};
  attributes->active_mtu = 5;  // 4096 bytes
  attributes->max_message_bytes = 1U << 30U;
  return 0;
}
ProtectionDomain* ibv_alloc_pd(Context* /*context*/) { return fake::made(new ProtectionDomain); }
int ibv_dealloc_pd(ProtectionDomain* domain) { return fake::given_back(domain); }
MemoryRegion* ibv_reg_mr(ProtectionDomain* domain, void* begin, std::size_t bytes, int access) {
  if (fake::wants_atomics_in_vain(static_cast<unsigned>(access))) {
    errno = EINVAL;
    return nullptr;
  }
  const std::uint32_t key = world().next_key;
  world().next_key += 2;
  auto* const region = fake::made(new MemoryRegion{nullptr, domain, begin, bytes, 0, key, key + 1});
  world().regions.insert(region);
  return region;
}
int ibv_dereg_mr(MemoryRegion* region) {
  world().regions.erase(region);
  for (const auto& [number, pair] : world().pairs) {
    for (const fake::Posted& one : pair->receives) {
      if (one.segment.bytes > 0 && one.segment.local_key == region->local_key) {
        fake::fault("memory goes that a receive is posted for");
      }
    }
  }
  return fake::given_back(region);
}
CompletionChannel* ibv_create_comp_channel(Context* context) {
  return fake::made(new CompletionChannel{context, eventfd(0, EFD_CLOEXEC), 0});
}
int ibv_destroy_comp_channel(CompletionChannel* channel) {
  close(channel->descriptor);
  return fake::given_back(channel);
}
CompletionQueue* ibv_create_cq(Context* context, int entries, void* user, CompletionChannel* channel, int /*vector*/) {
  auto* const queue = fake::made(new fake::Queue);
  queue->context = context;
  queue->channel = channel;
  queue->user = user;
  queue->entries = entries;
  fake::world().queues.insert(queue);
  return queue;
}
int ibv_resize_cq(CompletionQueue* queue, int entries) {
  if (!fake::world().ledger.abilities.resizes) return ENOSYS;
  queue->entries = entries;
  return 0;
}
int ibv_destroy_cq(CompletionQueue* queue) {
  std::erase_if(world().held, [&](const auto& one) { return one.first == queue; });
  fake::world().queues.erase(static_cast<fake::Queue*>(queue));
  return fake::given_back(static_cast<fake::Queue*>(queue));
}
int ibv_get_cq_event(CompletionChannel* channel, CompletionQueue** /*which*/, void** /*user*/) {
  if (const unsigned pause = fake::world().ledger.foreign_events_us; pause > 0) {
    usleep(pause);
    return 0;
  }
  pollfd event{channel->descriptor, POLLIN, 0};
  if (poll(&event, 1, 0) == 0) {  // it would sleep
    for (const fake::Queue* queue : fake::world().queues) {
      if (queue->channel != channel || queue->complete.empty()) continue;
      fake::fault("a waiter goes to sleep beside " + std::to_string(queue->complete.size()) + " completions");
      errno = EINTR;
      return -1;
    }
  }
  std::uint64_t events = 0;
  return read(channel->descriptor, &events, sizeof events) == sizeof events ? 0 : -1;
}
void ibv_ack_cq_events(CompletionQueue* /*queue*/, unsigned /*count*/) {}
QueuePair* ibv_create_qp(ProtectionDomain* domain, QueuePairSetup* setup) {
  if (const int error = fake::world().ledger.abilities.queue_pair_error; error != 0) {
    errno = error;
    return nullptr;
  }
  if (setup->capacity.inline_bytes > fake::world().ledger.abilities.inline_bytes) {
    errno = EINVAL;
    return nullptr;
  }
  auto* const pair = fake::made(new fake::Pair);
  pair->context = setup->send_queue->context;
  pair->domain = domain;
  pair->send_queue = setup->send_queue;
  pair->receive_queue = setup->receive_queue;
  pair->capacity = setup->capacity;
  pair->number = world().next_pair++;
  world().pairs[pair->number] = pair;
  world().ledger.told[pair->number].setup = *setup;
  return pair;
}
int ibv_modify_qp(QueuePair* of, QueuePairAttributes* attributes, int what) {
  auto& pair = *static_cast<fake::Pair*>(of);
  fake::Told& told = world().ledger.told[pair.number];
  if ((what & set_access) != 0 && fake::wants_atomics_in_vain(attributes->access)) return EINVAL;
  if ((what & set_state) == 0) return 0;
  if (attributes->state == State::error) {
    fake::break_off(pair, nullptr);
    return 0;
  }
  pair.state = attributes->state;
  if (pair.state == State::ready_to_receive) told.to_receive = *attributes;
  if (pair.state == State::ready_to_send) told.to_send = *attributes;
  if ((what & set_peer) != 0) pair.peer = attributes->peer;
  return 0;
}
int ibv_destroy_qp(QueuePair* of) {
  auto* const pair = static_cast<fake::Pair*>(of);
  world().pairs.erase(pair->number);
  return fake::given_back(pair);
}
AddressHandle* ibv_create_ah(ProtectionDomain* /*domain*/, Address* /*way*/) { return fake::made(new AddressHandle); }
int ibv_destroy_ah(AddressHandle* way) { return fake::given_back(way); }
}

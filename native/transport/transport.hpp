// What a transport is: this rank's end of a path to one peer at one layer. Patterns are written against this concept
// and know no transport by name. A device (transport/device.hpp) opens the local end; then the peers exchange
// `address()` over the control plane and each calls `meet()`. send() and receive() are on the timed path: no virtual
// call, no allocation.
//
// Whatever a pattern needs to know of a path it reads from its traits or asks by one of the concepts below; what a path
// can do beyond sending and receiving is a concept of its own, and no trait is inferred from another.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/interface.hpp"
#include "base/socket.hpp"
#include "base/vocabulary.hpp"
#include "core/message_buffer.hpp"
#include "core/rdma_attachment.hpp"
#include "core/secret.hpp"
#include "core/stages.hpp"

namespace fabricbench {

/// Where an end of a path stands.
struct Site {
  std::uint32_t token = 0;  // of this path: what its datagrams carry, no other path's do, and strangers do not know
  Secret secret{};          // of this path as well: what a connection proves its right by
  int peer_rank = 0;        // in MPI_COMM_WORLD
  int flow = 0;             // of several paths between the same two ranks
  std::uint32_t generation = 0;  // how many paths there were in its place: what they left must not be taken
  bool is_first = false;         // of the two: it connects, and it takes the first of two protocol numbers
};

/// How bytes are told apart: a stream may be taken in other pieces than it was sent in, a message comes as it was sent.
enum class Framing { stream, message };

/// What messages of an unreliable layer begin with, inside the payload: whose the message is and which it is.
struct DatagramHeader {
  std::uint32_t token;
  std::uint32_t sequence;

  friend bool operator==(const DatagramHeader&, const DatagramHeader&) = default;
};
static_assert(sizeof(DatagramHeader) == 8);

inline DatagramHeader read_header(std::span<const std::byte> message) {
  DatagramHeader header;
  std::memcpy(&header, message.data(), sizeof header);
  return header;
}

inline void write_header(std::span<std::byte> message, DatagramHeader header) {
  std::memcpy(message.data(), &header, sizeof header);
}

/// What a layer guarantees and allows. Messages of an unreliable layer begin with a DatagramHeader.
struct Traits {
  bool is_reliable;  // what was taken comes, once, or the path throws a Failure
  bool is_ordered;
  Framing framing;
  std::size_t smallest_message;

  /// Patterns know reliable layers that keep the order, streams or messages, and unreliable ones of messages.
  constexpr bool is_known() const { return is_reliable ? is_ordered : framing == Framing::message; }
};

/// Those of layers whose messages may be lost, doubled or overtaken.
inline constexpr Traits datagram_traits{
    .is_reliable = false, .is_ordered = false, .framing = Framing::message, .smallest_message = sizeof(DatagramHeader)};

/// Memory of at least so many bytes holds a message: one that is smaller than a datagram's header is carried in the
/// header.
template <class T>
inline constexpr std::size_t least_carried_bytes = T::traits.is_reliable ? 0 : T::traits.smallest_message;

/// The smallest message that a cell may have.
template <class T>
inline constexpr std::size_t smallest_message_over = T::traits.is_reliable ? T::traits.smallest_message : 1;

/// A path on which messages are sent to a peer.
///
/// All that is sent and received lies in memory that the device which opened the path has lent (Task::allocate in
/// core/measurement.hpp). send() returns when the layer has taken the message. receive() returns true with a message,
/// or, on unreliable layers only, false when the bound has passed without one; reliable layers throw a Failure then. A
/// message has the size of the span; an unreliable layer may deliver another one, which its header tells. set_bound()
/// is called before each cell.
template <class T>
concept Transport =
    requires(T path, std::span<const std::byte> out, std::span<std::byte> in, std::string_view address) {
      { T::traits } -> std::convertible_to<Traits>;
      requires T::traits.is_known();
      { path.largest_message() } -> std::same_as<std::size_t>;
      { path.address() } -> std::same_as<std::string>;
      path.meet(address);
      path.set_bound(1.0);
      path.send(out);
      { path.receive(in) } -> std::same_as<bool>;
    };

/// A transport whose calls can be made without waiting, and whose readiness poll() tells.
///
/// try_send() takes as much of a message as there is room for and tells how much, 0 where there is none now; layers of
/// messages take one whole. try_receive() gives as much as there is, 0 where there is nothing now; on layers of
/// messages that is one, with its header on unreliable ones. descriptor() is readable when something has come,
/// sending_descriptor(), which may be the same, writable when there is room, but for one case: has_full_interface()
/// tells after a try_send() in vain that the interface's queue is full, and nobody tells when it no longer is.
template <class T>
concept PolledTransport = Transport<T> && requires(T path, std::span<const std::byte> out, std::span<std::byte> in) {
  { path.try_send(out) } -> std::same_as<std::size_t>;
  { path.try_receive(in) } -> std::same_as<std::size_t>;
  { path.descriptor() } -> std::same_as<int>;
  { path.sending_descriptor() } -> std::same_as<int>;
  { path.has_full_interface() } -> std::same_as<bool>;
};

/// A transport that sends several messages by one call: queue() takes a message as send() does, but may keep it until
/// send_queued(), with which who queues ends.
template <class T>
concept QueueingTransport = Transport<T> && requires(T path, std::span<const std::byte> out) {
  path.queue(out);
  path.send_queued();
};

/// A byte stream that one thread can drive on many paths. abandon() lets go of everything that is still under way when
/// the path is closed; cut() does so at once, and whatever the peer does on the path fails from then on. It cannot be
/// used again after either.
template <class T>
concept ByteStream =
    PolledTransport<T> && T::traits.is_reliable && T::traits.framing == Framing::stream && requires(T path) {
      path.abandon();
      path.cut();
    };

/// A transport that can have the next receive ready before what it answers is sent, as adapters want it: round trips
/// then post it outside the stamps.
///
/// prepost() says where the next message goes; with one outstanding it changes nothing, and names the same memory.
/// receive_preposted() is receive() into what was preposted, which is over when it returns true. The layer owns that
/// memory until then: who waits no longer lets go of it and hands over what keeps the memory, also where none is
/// outstanding. receive() is not called in between.
template <class T>
concept PrepostingTransport = Transport<T> && requires(T path, std::span<std::byte> in) {
  path.prepost(in);
  { path.receive_preposted() } -> std::same_as<bool>;
  path.release_preposted(std::shared_ptr<const void>());
};

/// A transport on which receives that are posted stay posted: where messages did not come for all of them, the path is
/// closed after the cell.
template <class T>
concept LeavingTransport = Transport<T> && requires(const T path) {
  { path.has_leftovers() } -> std::same_as<bool>;
};

/// A transport that finds a message among all that have come by what its receiver names. leave_unmatched() sends so
/// many empty ones that no receive names and waits until as many of the peer's are here; take_unmatched() receives
/// those. Both ends call either.
template <class T>
concept MatchingTransport = Transport<T> && requires(T path, std::size_t messages) {
  path.leave_unmatched(messages);
  path.take_unmatched(messages);
};

/// A transport over sockets whose buffers the system grants.
template <class T>
concept SocketTransport = Transport<T> && requires(const T path) {
  { path.granted_buffers() } -> std::same_as<GrantedBuffers>;
};

/// A transport that notes when its messages pass the boundaries between their stages.
///
/// begin_stages() makes room for so many round trips and has the kernel stamp. keep() says that what was sent and
/// received last is of the round trip of that number, which took so many nanoseconds; settle() takes what the kernel
/// has of it. Both are called outside what is timed. take_stages() ends it.
template <class T>
concept StagedTransport = Transport<T> && requires(T path, std::size_t round_trips, std::int64_t number) {
  path.begin_stages(round_trips);
  path.keep(number, number);
  path.settle();
  { path.take_stages() } -> std::same_as<StageReport>;
};

/// A transport by RDMA, which tells through which port it goes and what is in force on it.
template <class T>
concept RdmaTransportPath = requires(const T path) {
  { path.attachment() } -> std::same_as<RdmaAttachment>;
};

/// A reliable transport that also takes messages without waiting for them, each in one of its slots.
///
/// A slot is free until something is posted in it and again after wait() or what lets go of it, which return at once on
/// a free one. The layer owns the memory of a posted message until wait() has returned: who cannot wait because the
/// other end has failed lets go of the slot and hands over what keeps the memory. A send is never taken back.
template <class T>
concept PostingTransport = Transport<T> && T::traits.is_reliable &&
                           requires(T path, std::size_t slot, std::span<const std::byte> out, std::span<std::byte> in) {
                             { T::slots } -> std::convertible_to<std::size_t>;
                             path.post_send(slot, out);
                             path.post_receive(slot, in);
                             path.wait(slot);
                             path.release_send(slot, std::shared_ptr<const void>());
                             path.release_receive(slot, std::shared_ptr<const void>());
                           };

/// How many messages patterns keep under way in the slots of a path: all, unless the path says fewer by depth().
template <PostingTransport T>
std::size_t depth_of(const T& path) {
  if constexpr (requires { path.depth(); }) {
    return path.depth();
  } else {
    return T::slots;
  }
}

/// Waits for the first slots of a path, with one call where the layer has one.
template <PostingTransport T>
void wait_for_all(T& path, std::size_t slots) {
  if constexpr (requires { path.wait_all(slots); }) {
    path.wait_all(slots);
  } else {
    for (std::size_t slot = 0; slot < slots; ++slot) path.wait(slot);
  }
}

/// A posting transport that keeps a posted message back until the peer has posted its receive, and does so with no
/// other: one that comes where nothing is posted is sent again later.
template <class T>
concept GrantingTransport = PostingTransport<T> && requires { requires T::grants_posted; };

/// A posting transport whose messages on many paths can be waited for at once.
///
/// make_pool() of any of the paths of a device makes a `Pool` for all of them, with room for a number of messages; each
/// is posted in a place of its own, which is free again when test() has told it. test() gives the places of those that
/// are complete, sorted by nothing, and never waits.
template <class T>
concept PoolingTransport = PostingTransport<T> && requires(typename T::Pool pool, T path, std::size_t place,
                                                           std::span<const std::byte> out, std::span<std::byte> in) {
  { path.make_pool(place) } -> std::same_as<typename T::Pool>;
  pool.post_send(place, path, out);
  pool.post_receive(place, path, in);
  { pool.test() } -> std::same_as<std::span<const int>>;
  pool.release_send(place, std::shared_ptr<const void>());
  pool.release_receive(place, std::shared_ptr<const void>());
};

/// A transport that one rank can drive on many paths at once, as patterns of more than two ranks do: it is polled, or
/// it takes messages and tells of them in a pool.
template <class T>
concept GroupTransport = PolledTransport<T> || PoolingTransport<T>;

/// Where memory of a peer lies that others may work in.
struct Exposed {
  std::uint64_t address = 0;
  std::uint32_t key = 0;
  std::uint32_t unused = 0;
};

/// A path whose adapter must know the memory that messages lie in. register_once() makes memory known to it that no
/// device has lent, and forgets it again.
template <class T>
concept RegisteringTransport = requires(const T path, std::span<std::byte> memory) { path.register_once(memory); };

/// A path on which one rank works in memory of the other, which takes no part and is told of nothing.
///
/// Memory that the device has lent is exposed by what expose() tells of it; aim_at() takes that at the other end.
/// operate() begins an operation on the whole of a span, and wait_for() is over when it is complete, with all before
/// it; one that wants no completion may be over with a later one of the next few. `writes`: an operation writes the
/// span there. `adds`: it adds 1 to the word of 8 bytes there and gives what it was. Else it fetches what lies there.
/// make_pool() is as that of a PoolingTransport. Who cannot wait lets go.
template <class T>
concept RemoteMemoryTransport =
    requires(T path, typename T::Pool pool, std::span<std::byte> memory, std::string_view address, std::size_t place) {
      { T::traits } -> std::convertible_to<Traits>;
      { T::adds } -> std::convertible_to<bool>;
      { T::writes } -> std::convertible_to<bool>;
      { path.largest_message() } -> std::same_as<std::size_t>;
      { path.address() } -> std::same_as<std::string>;
      path.meet(address);
      path.set_bound(1.0);
      { path.depth() } -> std::same_as<std::size_t>;
      { path.expose(memory) } -> std::same_as<Exposed>;
      path.aim_at(Exposed{});
      { path.operate(memory) } -> std::same_as<std::uint64_t>;
      { path.operate(memory, true) } -> std::same_as<std::uint64_t>;
      path.wait_for(std::uint64_t{});
      path.release(std::shared_ptr<const void>());
      { path.make_pool(place) } -> std::same_as<typename T::Pool>;
      pool.post(place, path, memory);
      { pool.test() } -> std::same_as<std::span<const int>>;
      pool.release(place, std::shared_ptr<const void>());
    };

/// One on which a rank fetches from memory of the other, or adds to it: only it learns anything.
template <class T>
concept OneSidedTransport = RemoteMemoryTransport<T> && !T::writes;

/// One on which a rank writes into memory of the other, which may look there: wait_for_byte() is over when a byte of
/// its own memory has a value. Bytes of a write come in the order of their addresses.
template <class T>
concept WritingTransport = RemoteMemoryTransport<T> && T::writes &&
                           requires(T path, const std::byte& place) { path.wait_for_byte(place, std::byte{}); };

/// What leads to another rank.
template <class T>
concept PeerTransport = Transport<T> || RemoteMemoryTransport<T>;

/// A transport without a peer: the processor moves the bytes by itself. `operations` repetitions make one sample.
/// with_sweep() calls what it is given with what sweeps so many times, by as many threads as threads() says.
template <class T>
concept LocalTransport = requires(T local, std::size_t operations) {
  local.there_and_back(operations);
  local.with_sweep([](auto sweep) { sweep(std::size_t{}); });
  { local.threads() } -> std::same_as<std::size_t>;
  { local.bytes_there_and_back() } -> std::same_as<std::size_t>;
  { local.bytes_of_sweep() } -> std::same_as<std::size_t>;
};

/// A full queue of the interface gives no notice when it has room: it is tried again after about the time of some
/// frames.
inline constexpr std::uint32_t interface_retry_ns = 30'000;
/// A reliable path on which nothing moves for this long is given up.
inline constexpr double reliable_bound_seconds = 10.0;
/// Two ends that do not find each other within this time do not meet.
inline constexpr double meeting_bound_seconds = 5.0;

}  // namespace fabricbench

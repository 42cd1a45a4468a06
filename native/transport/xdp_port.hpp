// What all AF_XDP doors of this process share on one interface: the memory that frames lie in (UMEM), for each queue of
// the interface the rings through which its chunks go to the kernel and come back, and the program that hands frames to
// sockets. Each path has sockets of its own on them (XDP_SHARED_UMEM), one for each queue, so that the kernel tells
// paths apart and wakes up who is meant.
//
// Frames are copied between this memory and the kernel's (XDP_COPY), and between it and messages: the kernel of some
// drivers goes on reading what was handed over after the call (IFF_TX_SKB_NO_LINEAR), when the sender already writes
// the next message.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/interface.hpp"
#include "base/mapping.hpp"
#include "base/socket.hpp"
#include "transport/xdp_program.hpp"
#include "transport/xdp_rings.hpp"

namespace fabricbench {

/// A path's socket on one queue.
struct XdpSocket {
  Descriptor socket;
  XdpConsumer<xdp_desc> received;
  XdpProducer<xdp_desc> to_send;
};

class XdpPlace;

class XdpPort {
 public:
  /// The one of this process on that interface, with the program in this mode: the first who asks makes it, the last
  /// who has it ends it. Failure where anything is missing; what that is decides what to do.
  static std::shared_ptr<XdpPort> of(const Interface& interface, XdpMode mode);
  /// By of() alone.
  XdpPort(const Interface& interface, XdpMode mode);

  /// Have the program run in this mode from here on: doors of both modes share the interface in turn.
  void use(XdpMode mode) { program_.attach(interface_, mode); }

  /// The longest frame, with its Ethernet header, that lies in a chunk.
  std::size_t largest_frame() const;
  /// What a path can have received and not taken.
  std::size_t receive_bytes() const;

  /// A chunk for a frame to be sent through a queue; null where the interface still has all of them.
  std::byte* take_chunk(std::size_t queue) {
    std::uint64_t done = 0;
    while (queues_[queue].completion.pop(done)) free_.push_back(done);
    if (free_.empty()) [[unlikely]]
      take_all_back();
    if (free_.empty()) [[unlikely]]
      return nullptr;
    std::byte* const chunk = memory_.data() + free_.back();
    free_.pop_back();
    return chunk;
  }
  std::uint64_t place_of(const std::byte* chunk) const { return static_cast<std::uint64_t>(chunk - memory_.data()); }

  std::span<const std::byte> frame(const xdp_desc& received) const {
    return {memory_.data() + received.addr, received.len};
  }
  /// Have the kernel put another frame where this one lay.
  void give_back(std::size_t queue, const xdp_desc& received) { queues_[queue].fill.push(received.addr); }

 private:
  friend class XdpPlace;

  struct QueueCounts {
    std::uint32_t receiving = 1;
    std::uint32_t sending = 1;
  };
  struct Queue {
    Descriptor socket;  // of no path: it holds the queue and its rings
    XdpProducer<std::uint64_t> fill;
    XdpConsumer<std::uint64_t> completion;
    XdpConsumer<xdp_desc> received;  // a socket without a ring for frames cannot be bound; nothing is led here
  };

  static QueueCounts count_queues(const Interface& interface);
  Queue open_queue(std::uint32_t number);
  void take_all_back();

  Interface interface_;
  QueueCounts counts_;
  std::uint32_t chunk_bytes_;
  std::uint32_t chunks_of_queue_;  // for receiving
  Mapping memory_;
  XdpProgram program_;
  std::vector<Queue> queues_;
  std::vector<std::uint64_t> free_;  // chunks to send from, by their offset; the last given back is the next used
  std::vector<std::uint32_t> free_numbers_;  // of places
};

/// What a path has of a port: sockets of its own, which the frames with its token go to.
class XdpPlace {
 public:
  /// Failure where there is no more room.
  XdpPlace(std::shared_ptr<XdpPort> port, std::uint32_t token);
  ~XdpPlace();
  XdpPlace(const XdpPlace&) = delete;
  XdpPlace& operator=(const XdpPlace&) = delete;

  XdpPort& port() { return *port_; }
  const XdpPort& port() const { return *port_; }
  std::vector<XdpSocket>& sockets() { return sockets_; }
  /// The queue that it sends through: places take turns.
  std::size_t sending_queue() const { return number_ % std::min(port_->counts_.receiving, port_->counts_.sending); }
  /// Readable when there is something in any queue.
  int descriptor() const { return any_queue_.get() >= 0 ? any_queue_.get() : sockets_.front().socket.get(); }

 private:
  std::shared_ptr<XdpPort> port_;
  std::uint32_t token_;
  std::uint32_t number_ = 0;
  std::vector<XdpSocket> sockets_;  // by queue
  Descriptor any_queue_;            // epoll over several
};

}  // namespace fabricbench

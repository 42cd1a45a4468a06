// The two ends of a flow of messages over a reliable path. A transport that can post messages keeps several under way,
// as its users do to fill the line; any other sends and receives one after the other.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>

#include "core/message_buffer.hpp"
#include "core/plan.hpp"
#include "transport/transport.hpp"

namespace fabricbench {

template <Transport T>
class Outgoing {
 public:
  Outgoing(T& path, const PlanProbe& probe, const Allocate& allocate)
      : path_(path), usual_(allocate(probe.message_bytes)), last_(allocate(probe.message_bytes)) {}
  /// What is sent again and again, and what is sent at the end; to be filled before the first is sent.
  MessageBuffer& usual() { return usual_; }
  MessageBuffer& last() { return last_; }

  void send_usual() { path_.send(usual_.span()); }
  void send_last() { path_.send(last_.span()); }
  void finish() {}

 private:
  T& path_;
  MessageBuffer usual_;
  MessageBuffer last_;
};

template <Transport T>
class Incoming {
 public:
  Incoming(T& path, const PlanProbe& probe, const Allocate& allocate)
      : path_(path), buffer_(allocate(probe.message_bytes)) {}
  /// The next message; valid until the one after it is asked for.
  std::span<const std::byte> receive() {
    path_.receive(buffer_.span());
    return buffer_.span();
  }

 private:
  T& path_;
  MessageBuffer buffer_;
};

/// How many messages to keep under way: enough to hide a handshake for each, which 4 MiB are for 80 us even at 400
/// Gbit/s, or those of a window, which are milliseconds of the line; and no more, for all of them still have to arrive
/// when the receiver has seen enough.
template <PostingTransport T>
std::size_t messages_under_way(const T& path, const PlanProbe& probe) {
  constexpr std::size_t bytes = std::size_t{4} << 20U;
  constexpr std::size_t fewest = 4;
  const std::size_t most = std::max<std::size_t>(depth_of(path), 2);
  const std::size_t enough = std::min(bytes / std::max<std::size_t>(probe.message_bytes, 1), probe.messages_per_sample);
  return std::clamp(enough, std::min(fewest, most), most);
}

template <PostingTransport T>
class Outgoing<T> {
 public:
  Outgoing(T& path, const PlanProbe& probe, const Allocate& allocate)
      : path_(path),
        slots_(messages_under_way(path, probe)),
        usual_(allocate(probe.message_bytes)),
        last_(allocate(probe.message_bytes)) {}
  /// Where something was thrown before finish(), messages are still under way.
  ~Outgoing() {
    for (std::size_t slot = 0; slot < slots_; ++slot) {
      path_.release_send(slot, slot == last_slot_ ? last_.keeper() : usual_.keeper());
    }
  }
  Outgoing(const Outgoing&) = delete;
  Outgoing& operator=(const Outgoing&) = delete;

  MessageBuffer& usual() { return usual_; }
  MessageBuffer& last() { return last_; }

  void send_usual() { send(usual_.span()); }
  void send_last() {
    last_slot_ = next_;
    send(last_.span());
  }
  /// Wait until the layer has taken everything.
  void finish() { wait_for_all(path_, slots_); }

 private:
  void send(std::span<const std::byte> message) {
    path_.wait(next_);
    path_.post_send(next_, message);
    next_ = next_ + 1 == slots_ ? 0 : next_ + 1;
  }

  T& path_;
  std::size_t slots_;
  MessageBuffer usual_;
  MessageBuffer last_;
  std::size_t next_ = 0;
  std::size_t last_slot_ = T::slots;
};

template <PostingTransport T>
class Incoming<T> {
 public:
  Incoming(T& path, const PlanProbe& probe, const Allocate& allocate) : path_(path) {
    const std::size_t slots = messages_under_way(path, probe);
    for (std::size_t slot = 0; slot < slots; ++slot) buffers_.push_back(allocate(probe.message_bytes));
  }
  /// Takes back what was posted for messages that will not come.
  ~Incoming() {
    for (std::size_t slot = 0; slot < buffers_.size(); ++slot) {
      path_.release_receive(slot, buffers_[slot].keeper());
    }
  }
  Incoming(const Incoming&) = delete;
  Incoming& operator=(const Incoming&) = delete;

  std::span<const std::byte> receive() {
    if (has_given_) {
      path_.post_receive(next_, buffers_[next_].span());
      next_ = next_ + 1 == buffers_.size() ? 0 : next_ + 1;
    } else {
      post_all();
    }
    path_.wait(next_);
    return buffers_[next_].span();
  }

 private:
  void post_all() {
    for (std::size_t slot = 0; slot < buffers_.size(); ++slot) path_.post_receive(slot, buffers_[slot].span());
    has_given_ = true;
  }

  T& path_;
  std::deque<MessageBuffer> buffers_;
  std::size_t next_ = 0;
  bool has_given_ = false;
};

}  // namespace fabricbench

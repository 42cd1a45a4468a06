// A stream in windows that are answered, as osu_bw defines bandwidth: so many messages are under way at once, all into
// one buffer, and when the receiver has them it answers, which lets the next window go. The receiver keeps the time,
// from one complete window to the next: over many samples that is what the sender's clock shows as well. How it differs
// from a stream without a pause: the line is idle while an answer is on its way, and one receive buffer stays in the
// cache.
#pragma once

#include <algorithm>
#include <string>

#include "core/parameters.hpp"
#include "pattern/round_trip.hpp"
#include "pattern/stream_windows.hpp"

namespace fabricbench {

/// Whether a stream is one.
inline bool is_acknowledged(const PlanProbe& probe) { return whole_parameter(probe, "window") > 0; }

/// Over what cannot answer.
template <class T>
class AcknowledgedStream {
 public:
  AcknowledgedStream(T&, Task&) {
    throw Failure(FailureCode::unsupported,
                  "window needs a path on which every message arrives and is answered: leave it out");
  }
  Outcome run() { return {}; }
};

/// Messages of one window, each taken by the layer or received when the window ends, and all of them in one buffer.
template <Transport T>
class WindowInOneBuffer {
 public:
  WindowInOneBuffer(T& path, Task& task, std::size_t messages)
      : path_(path), messages_(messages), buffer_(task.allocate(task.probe.message_bytes)) {}
  MessageBuffer& buffer() { return buffer_; }

  void send() {
    for (std::size_t i = 0; i < messages_; ++i) path_.send(buffer_.span());
  }
  void receive() {
    for (std::size_t i = 0; i < messages_; ++i) path_.receive(buffer_.span());
  }

 private:
  T& path_;
  std::size_t messages_;
  MessageBuffer buffer_;
};

/// As many posted at once as the path takes.
template <PostingTransport T>
class WindowInOneBuffer<T> {
 public:
  WindowInOneBuffer(T& path, Task& task, std::size_t messages)
      : path_(path),
        messages_(messages),
        slots_(std::min<std::size_t>(messages, depth_of(path))),
        buffer_(task.allocate(task.probe.message_bytes)) {}
  ~WindowInOneBuffer() {
    for (std::size_t slot = 0; slot < slots_; ++slot) {
      is_sender_ ? path_.release_send(slot, buffer_.keeper()) : path_.release_receive(slot, buffer_.keeper());
    }
  }
  WindowInOneBuffer(const WindowInOneBuffer&) = delete;
  WindowInOneBuffer& operator=(const WindowInOneBuffer&) = delete;
  MessageBuffer& buffer() { return buffer_; }

  void send() {
    is_sender_ = true;
    post_all([this](std::size_t slot) { path_.post_send(slot, buffer_.span()); });
  }
  void receive() {
    post_all([this](std::size_t slot) { path_.post_receive(slot, buffer_.span()); });
  }

 private:
  template <class Post>
  void post_all(Post post) {
    for (std::size_t slot = 0; slot < slots_; ++slot) post(slot);
    std::size_t slot = 0;
    for (std::size_t i = slots_; i < messages_; ++i) {
      path_.wait(slot);
      post(slot);
      slot = slot + 1 == slots_ ? 0 : slot + 1;
    }
    wait_for_all(path_, slots_);
  }

  T& path_;
  std::size_t messages_;
  std::size_t slots_;
  MessageBuffer buffer_;
  bool is_sender_ = false;
};

template <Transport T>
  requires(T::traits.is_reliable)
class AcknowledgedStream<T> {
 public:
  AcknowledgedStream(T& path, Task& task)
      : path_(path), task_(task), window_(path, task, window_of(task.probe)), answer_(task.allocate(answer_bytes)) {
    path_.set_bound(task.probe.reply_timeout_seconds);
  }
  ~AcknowledgedStream() { expect_no_more(path_, answer_, answer_); }
  AcknowledgedStream(const AcknowledgedStream&) = delete;
  AcknowledgedStream& operator=(const AcknowledgedStream&) = delete;

  Outcome run() {
    if (task_.team.member() == stream_receiver) return receive();
    send();
    return {};
  }

 private:
  static constexpr std::size_t answer_bytes = 4;

  static std::size_t window_of(const PlanProbe& probe) {
    const std::size_t window = whole_parameter(probe, "window");
    if (window == probe.messages_per_sample) return window;
    throw Failure(FailureCode::unsupported, "a sample is a window that is answered: messages_per_sample must be " +
                                                std::to_string(window) + ", found " +
                                                std::to_string(probe.messages_per_sample));
  }

  void send() {
    do {
      expect(path_, answer_.span());
      window_.send();
      receive_expected(path_, answer_.span());
    } while (answer_.span()[0] != end_mark);
  }

  /// The first window, which comes when the sender does, starts the clock.
  Outcome receive() {
    window_.receive();
    WindowLog log(task_);
    std::uint64_t begin = Clock::now();
    for (bool has_enough = false; !has_enough;) {
      path_.send(answer_.span());
      window_.receive();
      const std::uint64_t end = Clock::now();
      has_enough = log.add(end, end - begin, static_cast<std::uint32_t>(task_.probe.messages_per_sample));
      begin = end;
    }
    answer_.span()[0] = end_mark;
    path_.send(answer_.span());
    task_.counters.sent += task_.samples.measured.size() * task_.probe.messages_per_sample;
    return log.outcome();
  }

  T& path_;
  Task& task_;
  WindowInOneBuffer<T> window_;
  MessageBuffer answer_;
};

}  // namespace fabricbench

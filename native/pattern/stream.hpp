// Pattern stream: messages flow from the first rank to the second without a pause; the second keeps the time. A sample
// is a window of messages, from the arrival of the last message of the window before to that of its own last: remote
// completion, nothing else. The receiver applies the stopping rule while messages flow and asks the sender over the
// control plane to end.
//
// With `window` a stream stops after each window until it is answered: pattern/acknowledged_stream.hpp.
//
// Over a reliable path every message comes, in order, and the last one carries a mark. A byte stream is cut instead by
// a receiver that has seen enough: what fills its buffers would take a third of a second to come at 100 Mbit/s. Over an
// unreliable one messages carry sequence numbers, windows end by them, and what is missing is counted: a window's bytes
// are those that came in its time, so that a lost message makes a sample smaller and never shorter.
#pragma once

#include <time.h>

#include <algorithm>
#include <optional>

#include "base/failure.hpp"
#include "core/measurement.hpp"
#include "core/parameters.hpp"
#include "pattern/acknowledged_stream.hpp"
#include "pattern/flow.hpp"
#include "pattern/local_batches.hpp"
#include "pattern/payload.hpp"
#include "pattern/stream_windows.hpp"
#include "transport/transport.hpp"

namespace fabricbench {

/// Over what does not send messages, pattern/one_sided.hpp and written.hpp say what they are.
template <PeerTransport T>
class StreamSender;
template <PeerTransport T>
class StreamReceiver;

/// Sends one message, which starts the receiver's clock, then windows until the receiver wants no more.
template <Transport T>
  requires(T::traits.is_reliable)
class StreamSender<T> {
 public:
  StreamSender(T& path, Task& task) : task_(task), out_(path, task.probe, task.allocate) {
    path.set_bound(task.probe.reply_timeout_seconds);
  }

  void run() {
    EndWatch watch(task_);
    if constexpr (ByteStream<T>) {
      send_until_cut(watch);
    } else {
      send_until_marked(watch);
    }
  }

 private:
  void send_until_cut(EndWatch& watch) {
    try {
      out_.send_usual();
      while (!watch.is_asked_to_end()) {
        for (std::size_t i = 0; i < task_.probe.messages_per_sample; ++i) out_.send_usual();
        task_.findings.passed.sent += task_.probe.messages_per_sample;
      }
    } catch (const Failure&) {
      if (!watch.has_been_asked()) throw;
    }
  }

  void send_until_marked(EndWatch& watch) {
    out_.last().span()[0] = end_mark;
    out_.send_usual();
    for (bool is_last = false; !is_last;) {
      is_last = watch.is_asked_to_end();
      for (std::size_t i = 1; i < task_.probe.messages_per_sample; ++i) out_.send_usual();
      is_last ? out_.send_last() : out_.send_usual();
      task_.findings.passed.sent += task_.probe.messages_per_sample;
    }
    out_.finish();
  }

  Task& task_;
  Outgoing<T> out_;
};

template <Transport T>
  requires(T::traits.is_reliable)
class StreamReceiver<T> {
 public:
  StreamReceiver(T& path, Task& task) : path_(path), task_(task), in_(path, task.probe, task.allocate) {
    path.set_bound(task.probe.reply_timeout_seconds);
  }

  Outcome run() {
    const std::size_t window = task_.probe.messages_per_sample;
    std::byte mark = in_.receive()[0];
    WindowLog log(task_);
    bool has_enough = false;
    std::uint64_t windows = 0;
    for (std::uint64_t begin = Clock::now(); mark != end_mark;) {
      for (std::size_t i = 1; i < window; ++i) in_.receive();
      mark = in_.receive()[0];
      const std::uint64_t end = Clock::now();
      const std::uint64_t time_ns = end - begin;
      begin = end;
      ++windows;
      if (has_enough) continue;  // what was under way when the sender was asked to end
      has_enough = log.add(end, time_ns, static_cast<std::uint32_t>(window));
      if (!has_enough) continue;
      task_.team.send(stream_sender, StreamEnd{});
      if constexpr (ByteStream<T>) {
        path_.cut();
        break;
      }
    }
    task_.counters.sent += task_.samples.measured.size() * window;
    task_.findings.passed.received += 1 + windows * window;
    return log.outcome();
  }

 private:
  T& path_;
  Task& task_;
  Incoming<T> in_;
};

// The sequence number of the messages that end a stream. Several are sent, because each may be lost.
inline constexpr std::uint32_t end_of_stream = 0xffffffff;
inline constexpr int end_messages = 5;
inline constexpr timespec end_message_distance{0, 1'000'000};
// A sender that is never told to end (its receiver is gone) ends by itself after the cell's time and this.
inline constexpr double sender_patience_seconds = 10;

template <Transport T>
  requires(!T::traits.is_reliable)
class StreamSender<T> {
 public:
  StreamSender(T& path, Task& task) : path_(path), task_(task), buffer_(task.allocate(task.probe.message_bytes)) {
    path_.set_bound(task.probe.reply_timeout_seconds);
  }

  void run() {
    const std::span<std::byte> message = buffer_.span();
    const double patience = 2 * task_.probe.stopping.maximum_seconds + sender_patience_seconds;
    const std::uint64_t deadline = Clock::now() + seconds_to_ns(patience);
    EndWatch watch(task_);
    write_header(message, {task_.token, task_.sequence++});
    path_.send(message);
    while (!watch.is_asked_to_end() && Clock::now() < deadline) {
      send_window(message);
      task_.findings.passed.sent += task_.probe.messages_per_sample;
    }
    write_header(message, {task_.token, end_of_stream});
    for (int i = 0; i < end_messages; ++i) {
      path_.send(message);
      nanosleep(&end_message_distance, nullptr);
    }
  }

 private:
  void send_window(std::span<std::byte> message) {
    for (std::size_t i = 0; i < task_.probe.messages_per_sample; ++i) {
      write_header(message, {task_.token, task_.sequence++});
      if constexpr (QueueingTransport<T>) {
        path_.queue(message);
      } else {
        path_.send(message);
      }
    }
    if constexpr (QueueingTransport<T>) path_.send_queued();
  }

  T& path_;
  Task& task_;
  MessageBuffer buffer_;
};

template <Transport T>
  requires(!T::traits.is_reliable)
class StreamReceiver<T> {
 public:
  StreamReceiver(T& path, Task& task)
      : path_(path),
        task_(task),
        buffer_(task.allocate(task.probe.message_bytes)),
        first_(task.sequence),
        tracker_(task.sequence) {
    path_.set_bound(task.probe.reply_timeout_seconds);
  }

  Outcome run() {
    WindowLog log(task_);
    std::uint64_t begin = 0;
    std::uint32_t window_end = 0;  // the number of the window's last message
    std::uint32_t messages = 0;
    std::uint64_t passed = 0;
    bool has_begun = false;
    for (;;) {
      const auto sequence = receive();
      if (!sequence) {
        if (log.is_time_over(Clock::now())) break;
        continue;
      }
      if (!tracker_.note(*sequence)) continue;
      if (!has_begun) {
        has_begun = true;
        tracker_.start_counting();  // this message belongs to no window
        begin = Clock::now();
        window_end = end_of_window(*sequence);
        continue;
      }
      ++messages;
      if (*sequence - window_end >= 1U << 31U) [[likely]]
        continue;
      const std::uint64_t end = Clock::now();
      passed += messages;
      const bool was_measuring = log.is_measuring();
      if (log.add(end, end - begin, messages)) break;
      if (!was_measuring && log.is_measuring()) tracker_.start_counting();
      begin = end;
      messages = 0;
      window_end = end_of_window(*sequence);
    }
    task_.counters.add(tracker_.counters());
    task_.findings.passed.received += passed + (has_begun ? 1 : 0);
    let_it_end();
    Outcome outcome = log.outcome();
    if (!outcome.stop) outcome.stop = StopReason::time;
    return outcome;
  }

 private:
  /// The last number of the window that begins after this message.
  std::uint32_t end_of_window(std::uint32_t sequence) const {
    const auto window = static_cast<std::uint32_t>(task_.probe.messages_per_sample);
    return first_ + ((sequence - first_) / window + 1) * window;
  }

  /// The next number that belongs to this stream, or nothing when the bound has passed.
  std::optional<std::uint32_t> receive() {
    while (path_.receive(buffer_.span())) {
      const DatagramHeader header = read_header(buffer_.span());
      const bool is_ours = header.token == task_.token && header.sequence - first_ < 1U << 31U;
      if (is_ours && header.sequence != end_of_stream) [[likely]]
        return header.sequence;
    }
    return std::nullopt;
  }

  /// Ask the sender to end and take what is still under way, until the end arrives, or nothing for the bound.
  void let_it_end() {
    task_.team.send(stream_sender, StreamEnd{});
    const double patience = sender_patience_seconds;
    const std::uint64_t deadline = Clock::now() + seconds_to_ns(patience);
    while (path_.receive(buffer_.span()) && Clock::now() < deadline) {
      const DatagramHeader header = read_header(buffer_.span());
      if (header.token != task_.token) continue;
      if (header.sequence == end_of_stream) break;
      if (header.sequence - task_.sequence < 1U << 31U) task_.sequence = header.sequence + 1;
    }
  }

  T& path_;
  Task& task_;
  MessageBuffer buffer_;
  std::uint32_t first_;
  SequenceTracker tracker_;
};

/// A sample of a window of messages.
template <class T>
class StreamOver;

template <PeerTransport T>
class StreamOver<T> {
 public:
  StreamOver(T& path, Task& task) : task_(task) {
    if (is_acknowledged(task.probe)) {
      acknowledged_.emplace(path, task);
    } else if (task.team.member() == stream_sender) {
      sender_.emplace(path, task);
    } else {
      receiver_.emplace(path, task);
    }
  }

  Outcome run() {
    Outcome outcome;
    if (acknowledged_) {
      outcome = acknowledged_->run();
    } else if (receiver_) {
      outcome = receive_or_end();
    } else if constexpr (WritingTransport<T>) {
      outcome = sender_->run();
    } else {
      sender_->run();
    }
    outcome.bytes_per_sample = task_.probe.messages_per_sample * task_.probe.message_bytes;
    return outcome;
  }

 private:
  Outcome receive_or_end() {
    try {
      Outcome outcome = receiver_->run();
      if (WritingTransport<T> || task_.samples.measured.size() > 0) return outcome;
    } catch (...) {
      task_.team.send(stream_sender, StreamEnd{});  // else the sender would send on until its own bound
      throw;
    }
    throw Failure(FailureCode::timeout,
                  "no window of messages arrived in time: is something filtering this protocol on the way, or is the "
                  "window longer than the time?");
  }

  Task& task_;
  std::optional<AcknowledgedStream<T>> acknowledged_;
  std::optional<StreamSender<T>> sender_;
  std::optional<StreamReceiver<T>> receiver_;
};

template <LocalTransport T>
class StreamOver<T> {
 public:
  StreamOver(T& local, Task& task) : local_(local), task_(task) {}

  Outcome run() {
    if (local_.threads() > 1) task_.findings.values["threads"] = static_cast<double>(local_.threads());
    return local_.with_sweep([this](auto sweep) { return take_local_batches(task_, local_.bytes_of_sweep(), sweep); });
  }

 private:
  T& local_;
  Task& task_;
};

struct Stream {
  static constexpr std::size_t timing_member = stream_receiver;

  template <class T>
  static constexpr bool runs_over = PeerTransport<T> || LocalTransport<T>;

  template <class T>
  using Over = StreamOver<T>;
};

}  // namespace fabricbench

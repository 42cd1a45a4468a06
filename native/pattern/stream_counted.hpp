// A stream over an unreliable path: messages carry sequence numbers, windows end by them, and what is missing is
// counted. The time of a window goes from the arrival that ended the window before to the arrival that ends this one,
// and its bytes are those that came in between, so that a lost message makes a sample smaller and never shorter.
#pragma once

#include <time.h>

#include <array>

#include "core/message_buffer.hpp"
#include "pattern/stream_control.hpp"
#include "transport/datagram.hpp"
#include "transport/transport.hpp"

namespace fabricbench {

// The sequence number of the messages that end a stream. Several are sent, because each may be lost.
inline constexpr std::uint32_t end_of_stream = 0xffffffff;
inline constexpr int end_messages = 5;
inline constexpr timespec end_message_distance{0, 1'000'000};
// A sender that is never told to end (its receiver is gone) ends by itself after the cell's time and this.
inline constexpr double sender_patience_seconds = 10;

/// Send one message, which starts the receiver's clock, then windows until the receiver wants no more.
template <class Clock, Transport T>
  requires(!T::traits.is_reliable)
void send_stream(T& path, Task& task) {
  MessageBuffer buffer(task.probe.message_bytes);
  const std::span<std::byte> message = buffer.span();
  path.set_bound(task.probe.reply_timeout_seconds);
  const double patience = 2 * task.probe.stopping.maximum_seconds + sender_patience_seconds;
  const std::uint64_t deadline = Clock::now() + task.timebase.to_ticks(patience);
  EndWatch<Clock> watch(task);
  write_header(message, {task.token, task.sequence++});
  path.send(message);
  while (!watch.is_asked_to_end() && Clock::now() < deadline) {
    for (std::size_t i = 0; i < task.probe.messages_per_sample; ++i) {
      write_header(message, {task.token, task.sequence++});
      path.send(message);
    }
  }
  write_header(message, {task.token, end_of_stream});
  for (int i = 0; i < end_messages; ++i) {
    path.send(message);
    nanosleep(&end_message_distance, nullptr);
  }
}

/// Follows the sequence numbers of a stream and counts what did not come as it was sent.
class SequenceTracker {
 public:
  explicit SequenceTracker(std::uint32_t first) : first_(first), next_(first) { seen_.fill(first - 1); }

  /// Note an arrival; false where it was a double.
  bool note(std::uint32_t sequence) {
    std::uint32_t& slot = seen_[sequence % seen_.size()];
    if (sequence == next_) [[likely]] {
      ++next_;
    } else if (sequence - next_ < half_of_all) {
      next_ = sequence + 1;
    } else if (slot == sequence) {
      ++duplicated_;
      return false;
    } else {
      ++reordered_;
    }
    slot = sequence;
    ++arrived_;
    return true;
  }

  /// Count from here on.
  void start_counting() {
    first_ = next_;
    arrived_ = reordered_ = duplicated_ = 0;
  }

  Counters counters() const {
    const std::uint64_t sent = next_ - first_;
    return {.sent = sent, .lost = sent - std::min(sent, arrived_), .reordered = reordered_, .duplicated = duplicated_};
  }

 private:
  static constexpr std::uint32_t half_of_all = 1U << 31U;
  std::uint32_t first_;
  std::uint32_t next_;
  std::uint64_t arrived_ = 0;
  std::uint64_t reordered_ = 0;
  std::uint64_t duplicated_ = 0;
  std::array<std::uint32_t, 1024>
      seen_{};  // the last number that was seen in each slot: enough for any real reordering
};

template <class Clock, Transport T>
class CountedReceiver {
 public:
  CountedReceiver(T& path, Task& task)
      : path_(path), task_(task), buffer_(task.probe.message_bytes), first_(task.sequence), tracker_(task.sequence) {
    path_.set_bound(task.probe.reply_timeout_seconds);
  }

  Outcome run() {
    WindowLog<Clock> log(task_);
    if (log.is_measuring()) tracker_.start_counting();
    std::uint64_t begin = 0;
    std::uint32_t window_end = 0;  // the number of the window's last message
    std::uint32_t messages = 0;
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
        begin = Clock::now();
        window_end = end_of_window(*sequence);
        continue;
      }
      ++messages;
      if (*sequence - window_end >= 1U << 31U) [[likely]]
        continue;
      const std::uint64_t end = Clock::now();
      const bool was_measuring = log.is_measuring();
      if (log.add(end, end - begin, messages)) break;
      if (!was_measuring && log.is_measuring()) tracker_.start_counting();
      begin = end;
      messages = 0;
      window_end = end_of_window(*sequence);
    }
    task_.counters.add(tracker_.counters());
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
    const std::uint64_t deadline = Clock::now() + task_.timebase.to_ticks(patience);
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

template <class Clock, Transport T>
  requires(!T::traits.is_reliable)
Outcome receive_stream(T& path, Task& task) {
  return CountedReceiver<Clock, T>(path, task).run();
}

}  // namespace fabricbench

// A stream over a reliable path: every message comes, in order. The last message of the stream carries a mark.
#pragma once

#include "core/message_buffer.hpp"
#include "pattern/flow.hpp"
#include "pattern/stream_control.hpp"
#include "transport/transport.hpp"

namespace fabricbench {

inline constexpr std::byte end_mark{1};

/// Send one message, which starts the receiver's clock, then windows until the receiver wants no more.
template <class Clock, Transport T>
  requires(T::traits.is_reliable)
void send_stream(T& path, Task& task) {
  path.set_bound(task.probe.reply_timeout_seconds);
  Outgoing<T> out(path, task.probe.message_bytes);
  out.last().span()[0] = end_mark;
  EndWatch<Clock> watch(task);
  out.send_usual();
  for (bool is_last = false; !is_last;) {
    is_last = watch.is_asked_to_end();
    for (std::size_t i = 1; i < task.probe.messages_per_sample; ++i) out.send_usual();
    is_last ? out.send_last() : out.send_usual();
  }
  out.finish();
}

template <class Clock, Transport T>
  requires(T::traits.is_reliable)
Outcome receive_stream(T& path, Task& task) {
  path.set_bound(task.probe.reply_timeout_seconds);
  Incoming<T> in(path, task.probe.message_bytes);
  const std::size_t window = task.probe.messages_per_sample;
  std::byte mark = in.receive()[0];
  WindowLog<Clock> log(task);
  bool has_enough = false;
  for (std::uint64_t begin = Clock::now(); mark != end_mark;) {
    for (std::size_t i = 1; i < window; ++i) in.receive();
    mark = in.receive()[0];
    const std::uint64_t end = Clock::now();
    const std::uint64_t ticks = end - begin;
    begin = end;
    if (has_enough) continue;  // what was under way when the sender was asked to end
    has_enough = log.add(end, ticks, static_cast<std::uint32_t>(window));
    if (has_enough) task.team.send(stream_sender, StreamEnd{});
  }
  task.counters.sent += task.samples.measured.size() * window;
  return log.outcome();
}

}  // namespace fabricbench

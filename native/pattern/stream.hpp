// Pattern stream: messages flow from the first rank to the second without a pause; the second keeps the time. A sample
// is a window of messages, from the arrival of the last message of the window before to that of its own last: remote
// completion, nothing else. The receiver applies the stopping rule while messages flow and asks the sender over the
// control plane to end.
#pragma once

#include "core/failure.hpp"
#include "pattern/local_batches.hpp"
#include "pattern/stream_counted.hpp"
#include "pattern/stream_reliable.hpp"

namespace fabricbench {

class Stream {
 public:
  static constexpr std::size_t timing_member = stream_receiver;

  template <class T>
  static constexpr bool runs_over = Transport<T> || LocalTransport<T>;

  static std::size_t bytes_per_sample(const PlanProbe& probe) {
    return probe.messages_per_sample * probe.message_bytes;
  }

  template <class Clock, Transport T>
  static Outcome run(T& path, Task& task) {
    Outcome outcome;
    if (task.team.member() == stream_sender) {
      send_stream<Clock>(path, task);
    } else {
      outcome = receive_or_end<Clock>(path, task);
    }
    outcome.bytes_per_sample = bytes_per_sample(task.probe);
    return outcome;
  }

  template <class Clock, LocalTransport T>
  static Outcome run(T& local, Task& task) {
    return take_local_batches<Clock>(task, local.bytes_of_sweep(),
                                     [&](std::size_t operations) { local.sweep(operations); });
  }

 private:
  template <class Clock, Transport T>
  static Outcome receive_or_end(T& path, Task& task) {
    try {
      Outcome outcome = receive_stream<Clock>(path, task);
      if (task.samples.measured.size() > 0) return outcome;
    } catch (const Failure&) {
      task.team.send(stream_sender, StreamEnd{});  // else the sender would send on until its own bound
      throw;
    }
    throw Failure(FailureCode::timeout,
                  "no window of messages arrived in time: is something filtering this protocol on the way, or is the "
                  "window longer than the time?");
  }
};

}  // namespace fabricbench

// Pattern registration: the first rank registers memory of the message's size with its adapter and gives it back, again
// and again, in the kind of memory that the cell asks for (parameter `memory`). Nothing crosses the network; the second
// rank waits. The pages are there and touched: what is timed is pinning them and telling the adapter, and the reverse.
#pragma once

#include "core/message_buffer.hpp"
#include "pattern/local_batches.hpp"
#include "pattern/round_trip.hpp"

namespace fabricbench {

template <RegisteringTransport T>
class RegistrationOver {
 public:
  RegistrationOver(T& path, Task& task)
      : path_(path), task_(task), memory_(host_memory(task.probe.message_bytes, task.memory)) {
    if (task.memory != MemoryKind::huge) return;
    task.findings.values["huge_page_buffer_bytes"] = static_cast<double>(memory_.huge_bytes());
  }

  Outcome run() {
    if (task_.team.member() != leader) {
      task_.team.template receive<RoundOrder>(leader);
      return {};
    }
    const FollowerRelease release(task_.team);
    return take_local_batches(task_, 0, [this](std::size_t operations) {
      for (std::size_t i = 0; i < operations; ++i) path_.register_once(memory_.span());
    });
  }

 private:
  T& path_;
  Task& task_;
  MessageBuffer memory_;
};

struct Registration {
  static constexpr std::size_t timing_member = leader;

  template <class T>
  static constexpr bool runs_over = RegisteringTransport<T>;

  template <class T>
  using Over = RegistrationOver<T>;
};

}  // namespace fabricbench

// Which other process used the processors that this thread may run on, by stat in proc(5): who a thread waited for that
// was runnable and had none. Seen are the processes of this thread's PID namespace: in a lab its own, on a host all.
#pragma once

#include <sched.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace fabricbench {

/// What a process used of a processor over some time: 1 is one whole processor.
struct ProcessorUse {
  std::string process;  // its name, what cannot be printed as '?'
  double share = 0;
  bool is_realtime = false;  // SCHED_FIFO or SCHED_RR, which run before any usual thread
};

class OtherProcesses {
 public:
  /// Counts from now on.
  OtherProcesses();
  /// The process beside this one that used most since then, of those that ran on one of this thread's processors last;
  /// nothing where none used a hundredth of one.
  std::optional<ProcessorUse> busiest() const;

 private:
  /// What a process had used, and when it had begun.
  struct Beginning {
    std::uint64_t ticks = 0;
    std::uint64_t start_ticks = 0;
  };

  std::map<int, Beginning> begin_;  // by process
  std::uint64_t begin_ns_ = 0;
};

}  // namespace fabricbench

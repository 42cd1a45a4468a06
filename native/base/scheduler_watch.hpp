// When the calling thread was switched in, and for how long it was runnable without a processor: what an ordinary user
// is told of the scheduler about a thread of its own, by perf_event_open(2) (a software event that counts nothing and
// records context switches; kernel.perf_event_paranoid of 2 or less) and by schedstat in proc(5).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "base/socket.hpp"

struct perf_event_mmap_page;

namespace fabricbench {

class SchedulerWatch {
 public:
  /// Watches the calling thread from now on. What the host refuses is in `refused`, with the reason.
  SchedulerWatch();
  ~SchedulerWatch();
  SchedulerWatch(const SchedulerWatch&) = delete;
  SchedulerWatch& operator=(const SchedulerWatch&) = delete;

  /// When it was switched in last, not after `until_ns`, among the records since the call before; ns of CLOCK_REALTIME,
  /// 0 if it was not.
  std::int64_t take_switch_in(std::int64_t until_ns);
  /// For how long it was runnable and waited since the call before, ns.
  std::int64_t take_waited();

  /// By boundary: `resumed` where switches are not told, `waited` where waiting is not.
  const std::map<std::string, std::string>& refused() const { return refused_; }

 private:
  std::int64_t read_waited() const;

  std::map<std::string, std::string> refused_;
  Descriptor events_;
  Descriptor statistics_;
  perf_event_mmap_page* ring_ = nullptr;
  std::int64_t waited_ = 0;
};

}  // namespace fabricbench

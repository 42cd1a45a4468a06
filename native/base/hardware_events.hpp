// What processors and the kernel count of the calling thread, and of threads that it starts from now on, by
// perf_event_open(2): cycles, instructions, cache misses, and moves to other processors. Opened once; reading one takes
// a system call. kernel.perf_event_paranoid of 2 lets a user count its own work outside the kernel alone, 1 or less (or
// CAP_PERFMON) inside it too; virtual machines mostly have no counters of processors.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "base/socket.hpp"

struct perf_event_attr;

namespace fabricbench {

enum class HardwareEvent { cycles, instructions, cache_misses, migrations };

/// An event as it stands: where more are asked for than the processor has counters, each is counted for a part of the
/// time, `running_ns` of `enabled_ns`.
struct EventReading {
  std::uint64_t count = 0;
  std::uint64_t enabled_ns = 0;
  std::uint64_t running_ns = 0;
};

/// What was counted between two readings, scaled to the whole time where it was counted for a part; nothing where it
/// was never counted.
std::optional<std::uint64_t> counted_between(const EventReading& before, const EventReading& after);

class HardwareEvents {
 public:
  /// Opens an event, or returns the negative errno. Another than the system's in tests.
  using Open = std::function<int(const perf_event_attr&)>;
  static int open_by_system(const perf_event_attr& attributes);

  explicit HardwareEvents(const Open& open = open_by_system);

  using Readings = std::map<HardwareEvent, EventReading>;
  Readings read() const;
  /// Those that count outside the kernel alone, because this user may not ask for more.
  bool excludes_kernel(HardwareEvent event) const;
  /// Those that cannot be counted, with errno.
  const std::map<HardwareEvent, int>& refused() const { return refused_; }

 private:
  struct Opened {
    HardwareEvent event;
    Descriptor descriptor;
    bool excludes_kernel;
  };
  void open_one(HardwareEvent event, const Open& open);

  std::vector<Opened> opened_;
  std::map<HardwareEvent, int> refused_;
};

/// kernel.perf_event_paranoid; nothing where the kernel has no such counters.
std::optional<int> perf_event_paranoid();

}  // namespace fabricbench

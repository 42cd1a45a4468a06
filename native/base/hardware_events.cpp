#include "base/hardware_events.hpp"

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <optional>

namespace fabricbench {
namespace {

perf_event_attr attributes_of(HardwareEvent event) {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.inherit = 1;  // threads that the measurer starts for a cell
  attributes.exclude_hv = 1;
  attributes.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  attributes.type = event == HardwareEvent::migrations ? PERF_TYPE_SOFTWARE : PERF_TYPE_HARDWARE;
  switch (event) {
    case HardwareEvent::cycles:
      attributes.config = PERF_COUNT_HW_CPU_CYCLES;
      break;
    case HardwareEvent::instructions:
      attributes.config = PERF_COUNT_HW_INSTRUCTIONS;
      break;
    case HardwareEvent::cache_misses:
      attributes.config = PERF_COUNT_HW_CACHE_MISSES;
      break;
    case HardwareEvent::migrations:
      attributes.config = PERF_COUNT_SW_CPU_MIGRATIONS;
      break;
  }
  return attributes;
}

bool is_forbidden(int result) { return result == -EACCES || result == -EPERM; }

}  // namespace

std::optional<std::uint64_t> counted_between(const EventReading& before, const EventReading& after) {
  const std::uint64_t count = after.count - before.count;
  const std::uint64_t enabled = after.enabled_ns - before.enabled_ns;
  const std::uint64_t running = after.running_ns - before.running_ns;
  if (after.count < before.count || (running == 0 && enabled > 0)) return std::nullopt;
  if (running >= enabled) return count;
  return static_cast<std::uint64_t>(static_cast<double>(count) * static_cast<double>(enabled) /
                                    static_cast<double>(running));
}

int HardwareEvents::open_by_system(const perf_event_attr& attributes) {
  const auto found = static_cast<int>(syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));
  return found < 0 ? -errno : found;
}

HardwareEvents::HardwareEvents(const Open& open) {
  for (const auto event :
       {HardwareEvent::cycles, HardwareEvent::instructions, HardwareEvent::cache_misses, HardwareEvent::migrations}) {
    open_one(event, open);
  }
}

void HardwareEvents::open_one(HardwareEvent event, const Open& open) {
  perf_event_attr attributes = attributes_of(event);
  int found = open(attributes);
  // A thread is moved by the kernel, and so outside of it never: that would count 0.
  const bool counts_outside = event != HardwareEvent::migrations;
  if (is_forbidden(found) && counts_outside) {
    attributes.exclude_kernel = 1;
    found = open(attributes);
  }
  if (found < 0) {
    refused_[event] = -found;
  } else {
    opened_.push_back({event, Descriptor(found), attributes.exclude_kernel == 1});
  }
}

HardwareEvents::Readings HardwareEvents::read() const {
  Readings readings;
  for (const Opened& one : opened_) {
    std::array<std::uint64_t, 3> values{};
    if (::read(one.descriptor.get(), values.data(), sizeof values) != static_cast<ssize_t>(sizeof values)) continue;
    readings[one.event] = {.count = values[0], .enabled_ns = values[1], .running_ns = values[2]};
  }
  return readings;
}

bool HardwareEvents::excludes_kernel(HardwareEvent event) const {
  return std::ranges::any_of(opened_, [&](const Opened& one) { return one.event == event && one.excludes_kernel; });
}

std::optional<int> perf_event_paranoid() {
  int level = 0;
  if (std::ifstream("/proc/sys/kernel/perf_event_paranoid") >> level) return level;
  return std::nullopt;
}

}  // namespace fabricbench
